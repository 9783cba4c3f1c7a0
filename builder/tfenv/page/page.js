// Looks answers up; all decisions were taken when the page was written.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const [form, gpu, driver, python, only] = ["pick", "gpu", "driver", "python", "only"].map(element);
  const hint = element("driver-hint");
  const hintText = hint.textContent;
  const RUNS = ["proven", "runs", "limited"];
  const COUNTED = {
    proven: "runs", runs: "runs", limited: "limited", refused: "refused", failed: "refused", unknown: "unknown",
  };

  const numbers = (version) => version.split(".").map(Number);
  const compare = (a, b) => {
    for (let i = 0; i < Math.max(a.length, b.length); i++) {
      const difference = (a[i] ?? 0) - (b[i] ?? 0);
      if (difference) return difference;
    }
    return 0;
  };
  const starts = data.drivers.map(numbers);

  // The column of a driver in the grids, 0 if none is said, -1 for what is no version.
  function column(text) {
    const said = text.trim().replace(/^[rR](?=\d)/, "");
    if (!said) return 0;
    if (!/^\d{1,4}(\.\d{1,4}){0,3}$/.test(said)) return -1;
    let version = numbers(said);
    // A branch alone stands for its first release that matters here.
    if (version.length === 1) version = starts.find((start) => start[0] === version[0]) ?? version;
    return starts.filter((start) => compare(start, version) <= 0).length;
  }

  function chip(state) {
    const [colour, sign, words] = data.signs[state];
    const outer = document.createElement("span");
    outer.className = `chip ${colour}`;
    const inner = document.createElement("span");
    inner.setAttribute("aria-hidden", "true");
    inner.textContent = sign;
    outer.append(inner, ` ${words}`);
    return outer;
  }

  function paragraph(text) {
    const made = document.createElement("p");
    made.textContent = text;
    return made;
  }

  function list(title, texts) {
    const made = document.createElement("div");
    const items = document.createElement("ul");
    for (const text of texts) items.append(Object.assign(document.createElement("li"), { textContent: text }));
    made.append(paragraph(title), items);
    made.className = "remedies";
    return made;
  }

  // What a cell does on the picked GPU and driver, and whether that was proven.
  function look(cell, line, place) {
    const [grid, proofs] = data.cells[cell];
    const [state] = data.answers[data.grids[grid][line][place]];
    const proof = line && proofs.find(([of]) => of === line - 1);
    let shown = state;
    if (proof && state !== "refused" && (proof[1] === "failed" || state === "runs")) shown = proof[1];
    return { shown, proven: Boolean(proof) && proof[1] === "proven" };
  }

  // Before anything is picked only what holds everywhere, and is more than that it runs, is worth a block.
  function showAnswer(block, line, place, visible) {
    const [state, sentences, remedies] = data.answers[data.grids[block.dataset.grid][line][place]];
    block.hidden = !visible || (!line && !place && state === "runs");
    block.className = `answer ${data.signs[state][0]}`;
    const words = [chip(state)];
    if (block.dataset.on) words.push(` on ${block.dataset.on}`);
    const told = sentences.map((i) => paragraph(data.sentences[i]));
    if (remedies.length) told.push(list("What to do:", remedies.map((i) => data.sentences[i])));
    block.replaceChildren(...words, ...told);
  }

  function update() {
    const option = gpu.selectedOptions[0];
    const line = option.value ? Number(option.dataset.gpu) + 1 : 0;
    let place = column(driver.value);
    const wrong = place < 0;
    if (wrong) place = 0;
    driver.setAttribute("aria-invalid", String(wrong));
    hint.classList.toggle("wrong", wrong);
    hint.textContent = wrong ? "This is no driver version, such as 535.104.05: no driver is taken into account." : hintText;
    const picked = Boolean(line || place);
    document.body.classList.toggle("picked", picked);
    const counts = { runs: 0, limited: 0, refused: 0, unknown: 0, proven: 0, all: 0 };

    for (const release of all(".release")) {
      const grids = new Set();
      let rows = 0;
      for (const row of all(".cells tbody tr", release)) {
        const wanted = !python.value || row.dataset.python === python.value;
        let cells = 0;
        for (const cell of all("[data-cell]", row)) {
          const { shown, proven } = look(Number(cell.dataset.cell), line, place);
          const runs = RUNS.includes(shown);
          cell.dataset.state = shown;
          cell.hidden = only.checked && !runs;
          cell.querySelector(".yours").replaceChildren(...(picked ? [chip(shown)] : []));
          if (!wanted) continue;
          counts.all++;
          counts[COUNTED[shown]]++;
          if (runs && proven) counts.proven++;
          if (!cell.hidden) {
            cells++;
            grids.add(String(data.cells[cell.dataset.cell][0]));
          }
        }
        for (const refusal of all(".refusal", row)) refusal.hidden = only.checked;
        row.hidden = !wanted || (only.checked && !cells);
        if (!row.hidden) rows++;
      }
      for (const block of all(".answer", release)) showAnswer(block, line, place, grids.has(block.dataset.grid));
      let reasons = 0;
      for (const why of all(".why li", release)) {
        why.hidden = only.checked || Boolean(python.value && !why.dataset.pythons.split(" ").includes(python.value));
        reasons += !why.hidden;
      }
      for (const title of all(".why-title, .why", release)) title.hidden = !reasons;
      release.hidden = !rows;
    }
    for (const minor of all(".minor")) minor.hidden = all(".release", minor).every((release) => release.hidden);
    for (const link of all("nav a")) link.parentElement.hidden = element(link.hash.slice(1)).hidden;
    element("nothing").hidden = all(".release").some((release) => !release.hidden);
    element("count").textContent = sentence(counts, picked, wrong);
    remember(wrong);
  }

  function sentence(counts, picked, wrong) {
    const asked = [gpu.value, driver.value.trim() && !wrong && `driver ${driver.value.trim()}`, python.value && `Python ${python.value}`];
    const of = asked.filter(Boolean).join(", ");
    if (!picked) return `${of ? `${of}: ` : ""}${counts.all} environments. Pick a GPU and a driver to see which of them run.`;
    const proven = counts.proven ? `, ${counts.proven} verified on such a GPU` : "";
    const unknown = counts.unknown ? `; of ${counts.unknown} it is not known` : "";
    return `${of}: ${counts.runs} run, ${counts.limited} run with a limit${proven}; ${counts.refused} do not run${unknown}.`;
  }

  // The choice is kept in the address, so that it can be sent to somebody.
  function remember(wrong) {
    const kept = new URLSearchParams();
    for (const field of [gpu, driver, python]) if (field.value && !(wrong && field === driver)) kept.set(field.id, field.value.trim());
    if (only.checked) kept.set("only", "runs");
    const text = kept.toString();
    if (!text && !location.hash.includes("=")) return;
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // some browsers forbid it for local files
    }
  }

  function recall() {
    if (!location.hash.includes("=")) return;
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const field of [gpu, driver, python]) {
      const value = kept.get(field.id) ?? "";
      field.value = value;
      if (field.value !== value) field.value = "";
    }
    only.checked = kept.get("only") === "runs";
  }

  form.hidden = false;
  element("no-script").hidden = true;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  addEventListener("hashchange", () => { recall(); update(); });
  recall();
  update();
})();
