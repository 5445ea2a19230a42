// `insync` is there for whoever opens the console.

window.insync = new App(document.getElementById("app"));
