// Runs before the page proper, which takes a moment to arrive: the chosen theme, so that nothing flashes, and a
// message should the page fail, because nothing else could say it then.
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
