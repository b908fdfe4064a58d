// Keeps a page up to date: the server says that something has changed, and the parts that did are replaced. Without
// this script the page is the same, as of when it was loaded.
"use strict";

(() => {
  const FIRST = 2000, LONGEST = 60000; // milliseconds until it tries again
  const { stream } = document.body.dataset;
  const light = document.getElementById("live");
  const said = document.getElementById("said");
  const ahead = Number(document.body.dataset.now) * 1000 - Date.now(); // of this clock
  const told = new Map(); // what the server last sent of a part
  const options = { cache: "no-store", redirect: "error", headers: { "armlet-refresh": "1" } };
  let source = null, busy = false, wanted = null, delay = FIRST;

  const still = html => html.replace(/>[^<]*<\/time>/g, "></time>"); // times move by themselves
  const parts = root => [...root.querySelectorAll("[data-part]")];
  const isInUse = part => {
    const selection = getSelection();
    return selection.type === "Range" && part.contains(selection.anchorNode);
  };

  function span(seconds) {
    for (const [unit, size] of [["day", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
      const n = Math.floor(seconds / size);
      if (n >= 1) return `${n.toLocaleString("en")}\u00a0${unit}${unit === "day" && n > 1 ? "s" : ""} ago`;
    }
    return "just now";
  }

  function tick() {
    const now = (Date.now() + ahead) / 1000;
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const text = span(now - Number(time.dataset.ago));
      if (time.textContent !== text) time.textContent = text;
    }
  }

  function replace(part, fresh) {
    for (const open of part.querySelectorAll("details[open][id]")) {
      fresh.querySelector(`#${open.id}`)?.setAttribute("open", "");
    }
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.replaceWith(document.adoptNode(fresh));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  function show(next) {
    const answers = root => root.getElementById("answers")?.dataset.answers;
    if (answers(next) !== answers(document)) said.textContent = answers(next);
    for (const part of parts(document)) {
      const fresh = next.getElementById(part.id);
      if (!fresh || isInUse(part)) continue;
      const html = still(fresh.outerHTML);
      if (told.get(part.id) === html) continue;
      told.set(part.id, html);
      replace(part, fresh);
    }
    document.title = next.title;
    document.body.dataset.version = next.body.dataset.version;
  }

  async function refresh(version) {
    wanted = version;
    if (busy) return;
    busy = true;
    try {
      while (wanted !== null) {
        wanted = null;
        const answer = await fetch(location.href, options);
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        show(new DOMParser().parseFromString(await answer.text(), "text/html"));
        tick();
      }
    } catch {
      pause();
    } finally {
      busy = false;
    }
  }

  function mark(state, words) {
    light.dataset.state = state;
    light.textContent = words;
    light.hidden = false;
  }

  function pause() { // the server is busy or gone, or the key has expired: the page keeps what it shows
    if (!source) return;
    source.close();
    source = null;
    mark("off", "Not live");
    setTimeout(() => document.hidden || source || listen(), delay);
    delay = Math.min(2 * delay, LONGEST);
  }

  function listen() {
    source = new EventSource(stream);
    source.onopen = () => { delay = FIRST; mark("live", "Live"); };
    source.onerror = event => (event.target.readyState === EventSource.CLOSED ? pause() : mark("off", "Reconnecting"));
    source.addEventListener("version", event => {
      if (event.data !== document.body.dataset.version) refresh(event.data);
    });
  }

  if (!stream) return;
  for (const part of parts(document)) told.set(part.id, still(part.outerHTML));
  setInterval(tick, 1000);
  listen();
  document.addEventListener("visibilitychange", () => { // a hidden page: nothing is sent
    if (document.hidden) { source?.close(); source = null; }
    else if (!source) listen();
  });
})();
