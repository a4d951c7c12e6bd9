// Colours boxes by what the button group says, and shows the legend of that.
const chosen = cb_obj.active
for (const renderer of renderers) {
  renderer.glyph.fill_color = {field: fields[chosen], transform: mappers[chosen]}
}
legends.forEach((legend, number) => { legend.visible = number === chosen })
