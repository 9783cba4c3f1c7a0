// Searches the causes: all words of a short question, or the texts of the rules in a pasted log. Nothing is fetched.
(() => {
  "use strict";
  const anchors = JSON.parse(document.getElementById("anchors").textContent);
  const query = document.getElementById("query");
  const count = document.getElementById("count");
  const sections = [...document.querySelectorAll("main section")];
  const entries = [...document.querySelectorAll("details[data-rule]")].map((place) => ({
    place,
    text: place.textContent.toLowerCase().replace(/\s+/g, " "),
    anchors: anchors[place.dataset.rule] || [],
  }));
  document.getElementById("search").hidden = false;

  function matches(entry, asked, words) {
    if (!asked) return true;
    if (entry.anchors.some((anchor) => asked.includes(anchor))) return true;
    return words.length <= 12 && words.every((word) => entry.text.includes(word));
  }

  function show() {
    const asked = query.value.slice(0, 1000000).toLowerCase().replace(/[\u2018\u2019]/g, "'").replace(/\s+/g, " ").trim();
    const words = asked.split(" ", 13).filter(Boolean);
    let found = 0;
    for (const entry of entries) {
      const fits = matches(entry, asked, words);
      entry.place.hidden = !fits;
      found += fits ? 1 : 0;
    }
    for (const section of sections) section.hidden = !section.querySelector("details:not([hidden])");
    for (const entry of entries) entry.place.open = Boolean(asked) && found <= 3 && !entry.place.hidden;
    if (!asked) count.textContent = "";
    else if (found) count.textContent = `${found} of ${entries.length} fit`;
    else count.textContent = "No rule fits. Leave words out, or paste the lines before the error; tfenv explain reads whole logs.";
  }

  let waiting = 0;
  query.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 80);
  });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) query.value = asked;
  show();
  const named = location.hash.startsWith("#rule-") && document.getElementById(location.hash.slice(1));
  if (named) {
    named.open = true;
    named.scrollIntoView();
  }
})();
