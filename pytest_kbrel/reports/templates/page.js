(function () {
  "use strict";
  var bodies = Array.prototype.slice.call(document.querySelectorAll("tbody.case"));
  var bar = document.getElementById("filter");
  var words = new Map();
  var order = new Map();
  var names = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  bodies.forEach(function (body, at) { order.set(body, at); });

  function opener(body) { return body.querySelector("button.open"); }

  function show(body, open) {
    body.rows[1].hidden = !open;
    opener(body).setAttribute("aria-expanded", String(open));
  }

  function textOf(body) {
    if (!words.has(body)) { words.set(body, body.textContent.toLowerCase()); }
    return words.get(body);
  }

  function filter() {
    var wanted = bar.querySelector("input").value.toLowerCase().trim();
    var verdict = bar.querySelector("select").value;
    var shown = 0;
    bodies.forEach(function (body) {
      var fits = (!verdict || body.dataset.verdict === verdict) && (!wanted || textOf(body).indexOf(wanted) >= 0);
      body.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    document.querySelectorAll("section.group").forEach(function (group) {
      group.hidden = !group.querySelector("tbody.case:not([hidden])");
    });
    bar.querySelector("output").textContent = shown + " of " + bodies.length + " cases";
  }

  function value(body, column) {
    var cell = body.rows[0].cells[column];
    var text = cell ? cell.textContent.trim() : "";
    return cell && cell.classList.contains("num") ? parseFloat(text) : text;
  }

  function compare(one, other) {
    if (typeof one === "string") { return names.compare(one, other); }
    return one - other;
  }

  function sort(button) {
    var head = button.closest("th");
    var table = head.closest("table");
    var before = head.getAttribute("aria-sort");
    var after = before === "none" ? "ascending" : before === "ascending" ? "descending" : "none";
    var sign = after === "descending" ? -1 : 1;
    table.querySelectorAll("thead th[aria-sort]").forEach(function (other) { other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", after);
    Array.prototype.slice.call(table.tBodies).sort(function (one, other) {
      var left = value(one, head.cellIndex), right = value(other, head.cellIndex);
      var by = order.get(one) - order.get(other);
      if (after === "none") { return by; }
      if (left !== left || right !== right) { return (left !== left) - (right !== right) || by; }
      return sign * compare(left, right) || by;
    }).forEach(function (body) { table.appendChild(body); });
  }

  function go() {
    var id;
    try { id = decodeURIComponent(location.hash.slice(1)); } catch (error) { return; }
    var target = id && document.getElementById(id);
    if (!target) { return; }
    for (var above = target; above; above = above.parentElement) {
      if (above.tagName === "DETAILS") { above.open = true; }
    }
    if (target.matches("tbody.case")) {
      if (target.hidden) {
        bar.querySelector("input").value = "";
        bar.querySelector("select").value = "";
        filter();
      }
      show(target, true);
      opener(target).focus({ preventScroll: true });
    }
    target.scrollIntoView();
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button");
    var link = event.target.closest("a[href^='#']");
    if (button && button.classList.contains("open")) {
      var body = button.closest("tbody");
      show(body, body.rows[1].hidden);
    } else if (button && button.classList.contains("sort")) {
      sort(button);
    } else if (link && link.hash === location.hash) {
      go();
    }
  });
  window.addEventListener("hashchange", go);
  if (bar) {
    bar.hidden = false;
    bar.addEventListener("input", filter);
    filter();
  }
  // A browser moves the focus to the top while it follows the link of the address.
  window.addEventListener("load", go);
})();
