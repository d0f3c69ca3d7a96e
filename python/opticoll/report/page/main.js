"use strict";
// The page: a section for each part of the stored content.

const CONTENT = JSON.parse(document.getElementById("content").textContent);

const SECTIONS = {
  rows: (part) => {
    const table = tableOf(part);
    const sections = [tableSection(table)];
    if (part.choice) sections.unshift(figureSection(table));
    return sections;
  },
  plan: (part) => [planSection(part)],
  training: (part) => [trainingSection(part)],
};

function factsOf(list) {
  return facts(list.map(([name, value, unit, meaning]) => [name, Array.isArray(value) ? value.map((one) => reading(one, unit)).join(", ") : reading(value, unit), meaning]));
}

CONTENT.parts.forEach((part, number) => {
  const id = `part-${number}`;
  const section = element("article", {id}, element("h2", {}, part.title));
  document.getElementById("parts").append(section);
  // The answer comes first; the command lines and all facts follow.
  if (part.answer.length) section.append(factsOf(part.answer));
  for (const note of part.notes) section.append(element("p", {class: "note"}, note));
  section.append(...SECTIONS[part.kind](part));
  section.append(element("h3", {}, "What was asked"));
  for (const command of part.asked) section.append(commandLine(command));
  if (part.source) {
    section.append(element("pre", {class: "source", tabindex: "0", role: "region", "aria-label": "Study file"}, part.source.trim()));
  }
  section.append(factsOf(part.facts));
  if (part.also.length) {
    section.append(element("details", {}, element("summary", {}, "The same in every row"), factsOf(part.also)));
  }
});

if (CONTENT.parts.length > 1) {
  document.getElementById("contents").append(element("ul", {}, ...CONTENT.parts.map((part, number) =>
    element("li", {}, element("a", {href: `#part-${number}`}, part.title)))));
}
document.documentElement.dataset.ready = "yes";
