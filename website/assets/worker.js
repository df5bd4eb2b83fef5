// A browser starts no worker for a page that it opened from a folder. The theme's search then runs
// in a hidden frame, which the page talks to in the same way.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "Search"
      frame.addEventListener("load", () => this.start(frame.contentWindow, url), { once: true })
      document.documentElement.append(frame)
    }

    start(inside, url) {
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.onload = () => {
        this.inside = inside
        for (const data of this.waiting.splice(0)) this.postMessage(data)
      }
      inside.document.head.append(script)
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
  }
}
