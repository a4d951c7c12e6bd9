// Bytes in words, as the command line writes them: 2.1 GB, 23.3 MB, 15.2 kB, 12 B.
function in_words(count) {
  for (const [unit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (Math.abs(count) >= unit) {
      return `${(count / unit).toFixed(1)} ${name}`
    }
  }
  return `${count} B`
}
