// The theme puts a bar of buttons on each block of code and calls it navigation, which it is not.
new MutationObserver(changes => {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      if (node.matches?.("nav.md-code__nav")) node.setAttribute("role", "presentation")
    }
  }
}).observe(document.documentElement, { childList: true, subtree: true })
