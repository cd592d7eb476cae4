// Runs before the page proper, which takes a moment to arrive: the chosen theme, so that nothing flashes, and a
// message should the page fail, because nothing else could say it then; and how screens' code is loaded later.
(function () {
  var root = document.documentElement;
  try {
    var theme = localStorage.getItem("exitpilot.theme");
    if (theme === "light" || theme === "dark") root.setAttribute("data-theme", theme);
    var language = localStorage.getItem("exitpilot.language") || navigator.language || "";
    root.lang = /^zh/i.test(language) ? "zh-CN" : "en";
  } catch (error) {
    // Storage may be forbidden; the defaults will do.
  }
  // The code of a screen, ready to be called; index.html says in which file it is. Rejected with "gone" if the panel has
  // no such file (any more), and with anything else if it does not answer.
  var coming = {};
  var tries = 0;
  window.exitpilotModule = function (name) {
    if (!coming[name]) {
      coming[name] = load(name);
      coming[name].catch(function () { delete coming[name]; });
    }
    return coming[name];
  };
  function load(name) {
    var listed = document.querySelector('meta[name="exitpilot-modules"]').content.split(" ");
    var entry = listed.map(function (one) { return one.split("="); }).find(function (pair) { return pair[0] === name; });
    if (!entry) return Promise.reject("gone");
    var path = new URL("modules/" + entry[1], document.baseURI).href;
    // Some browsers never ask again for what could not be loaded once; under another address they do.
    var address = tries ? path + "?" + tries : path;
    return import(address).then(function (module) {
      return module.default().then(function () { return module; });
    }).catch(function (error) {
      tries += 1;
      return fetch(path, { method: "HEAD", cache: "no-store" }).then(function (answer) { throw answer.status === 404 ? "gone" : error; });
    });
  }
  function failed() {
    var failure = document.getElementById("failure");
    if (failure) failure.hidden = false;
  }
  window.addEventListener("exitpilot-panic", failed);
  window.addEventListener("error", function (event) {
    if (event.error || event.target instanceof HTMLScriptElement) failed();
  }, true);
  window.addEventListener("unhandledrejection", failed);
  window.addEventListener("click", function (event) {
    if (event.target instanceof Element && event.target.id === "failure-reload") location.reload();
  });
})();
