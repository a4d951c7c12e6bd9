// Finds boxes by a part of their name, shape, source or operation; outlines them, and moves the view to them.
const MOST_OUTLINED = 20000
const SIDES = ["left", "right", "bottom", "top"]

// Numbers of the texts of a table that contain what is looked for.
function texts_with(table, wanted) {
  const found = new Set()
  table.data.text.forEach((text, number) => { if (text.toLowerCase().includes(wanted)) found.add(number) })
  return found
}

function matches(view, wanted, hits) {
  const data = view.boxes.data
  const found = []
  for (let box = 0; box < data.name.length; box++) {
    if (data.name[box].toLowerCase().includes(wanted) || hits.some(([name, numbers]) => numbers.has(data[name][box]))) {
      found.push(box)
    }
  }
  // An exact name comes first, then what is there first.
  const rank = (box) => (data.name[box].toLowerCase() === wanted ? -1 : data.left[box])
  return found.sort((a, b) => rank(a) - rank(b))
}

function outline(view, found) {
  const shown = found.slice(0, MOST_OUTLINED)
  view.found.data = Object.fromEntries(SIDES.map((side) => [side, shown.map((box) => view.boxes.data[side][box])]))
  view.found.tags = [found, -1]
}

// Moves a view so that these boxes are in its middle, with some room around them.
function centre(view, found) {
  const data = view.boxes.data
  const least = (side) => found.reduce((low, box) => Math.min(low, data[side][box]), Infinity)
  const most = (side) => found.reduce((high, box) => Math.max(high, data[side][box]), -Infinity)
  for (const [range, low, high, room] of [
    [view.x_range, least("left"), most("right"), 10],
    [view.y_range, least("bottom"), most("top"), 0],
  ]) {
    const margin = Math.max(0.5 * (high - low), room)
    range.setv({start: low - margin, end: high + margin})
  }
}

function search(text) {
  const wanted = text.trim().toLowerCase()
  const hits = Object.entries(tables).map(([name, table]) => [name, wanted ? texts_with(table, wanted) : new Set()])
  let total = 0
  for (const view of views) {
    const found = wanted ? matches(view, wanted, hits) : []
    outline(view, found)
    total += found.length
    if (found.length) centre(view, found)
  }
  said.text = wanted ? `${total.toLocaleString("en-US")} found` : ""
}

// Goes to the next box that was found, or the one before.
function step(by) {
  for (const view of views) {
    const [found, last] = view.found.tags
    if (!found || !found.length) continue
    const now = last < 0 ? (by > 0 ? 0 : found.length - 1) : (last + by + found.length) % found.length
    view.found.tags = [found, now]
    centre(view, [found[now]])
    said.text = `${now + 1} of ${found.length.toLocaleString("en-US")}: ${view.boxes.data.name[found[now]]}`
  }
}
