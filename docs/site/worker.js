/* The search runs in a worker, and a browser starts none for a page that was opened from a folder: then a hidden frame
   that loads the same script is the worker. Material has its own such script load from the network, which we do without. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.ready = new Promise((resolve) => {
        this.inside.document.open();
        this.inside.document.write(
          "<script>postMessage = (data) => parent.dispatchEvent(new CustomEvent('worker', { detail: data }))</" + "script>",
          `<script src="${url}"></` + "script>",
        );
        this.inside.document.close();
        this.inside.addEventListener("load", resolve);
      });
      addEventListener("worker", (event) => {
        this.dispatchEvent(new MessageEvent("message", { data: event.detail }));
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
