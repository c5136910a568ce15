/** The person switcher: who you are at the moment, and whom you could be. */
/** @import { PersonView } from "../../slack/control-types.js" */
import { byId, fill, h, icon, iconButton } from "../dom.js";
import { become } from "../route.js";
import { store } from "../store.js";
import { avatar } from "./avatar.js";

/** Why somebody cannot be played. @type {Partial<Record<PersonView["kind"], string>>} */
const WHY_NOT = {
  deactivated: "Deactivated: cannot sign in. What they pressed before still stands.",
  invited: "Invited, has not joined yet.",
  bot: "An app, not a person.",
};

export function setUpPeople() {
  byId("me").addEventListener("click", openSwitcher);
  store.on(["workspace", "people"], () => {
    const me = store.workspace?.me;
    if (me === undefined) return;
    fill(
      byId("me"),
      avatar(me, me.realName, "small"),
      h(
        "span",
        { class: "me-text" },
        h("span", { class: "me-name" }, me.realName),
        h("span", { class: "me-title" }, me.title),
      ),
      icon("down"),
    );
    byId("me").setAttribute("aria-label", `You are ${me.realName}, ${me.title}. Be somebody else`);
  });
}

export function openSwitcher() {
  const workspace = store.workspace;
  if (workspace === null) return;
  const can = workspace.people.filter((p) => p.canAct);
  const cannot = workspace.people.filter((p) => !p.canAct);
  const dialog = h("dialog", { class: "dialog people-dialog", "aria-labelledby": "people-title" });
  const close = () => {
    dialog.close();
    dialog.remove();
    byId("me").focus();
  };
  const list = h(
    "div",
    { class: "dialog-body" },
    h(
      "ul",
      { class: "people" },
      can.map((p) => personEntry(p, close)),
    ),
    h("h3", { class: "people-heading" }, "Here, but not to be played"),
    h("ul", { class: "people" }, cannot.map(shownOnly)),
  );
  dialog.append(
    h(
      "div",
      { class: "dialog-head" },
      h("h2", { class: "dialog-title", id: "people-title" }, "Who are you?"),
      iconButton("close", "Close", { onclick: close }),
    ),
    h(
      "p",
      { class: "dialog-note" },
      "Every person sees the workspace as they would in Slack. Open a second window to be two people at once.",
    ),
    list,
  );
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  dialog.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const entries = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("button.person")]);
    const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (step === 0 || at === -1) return;
    event.preventDefault();
    entries[at + step]?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  const current = list.querySelector("[aria-current]");
  if (current instanceof HTMLElement) current.focus();
}

/** @param {PersonView} person @param {() => void} close */
function personEntry(person, close) {
  const isMe = person.id === store.as;
  const node = h(
    "button",
    { type: "button", class: "person", "aria-current": isMe ? "true" : null, data: { person: person.id } },
    avatar(person, person.realName),
    words(person, person.title),
    isMe ? h("span", { class: "badge" }, "You") : null,
  );
  node.addEventListener("click", () => {
    close();
    if (!isMe) void become(person.id);
  });
  const beside = h(
    "a",
    {
      class: "icon-button",
      href: `/?as=${person.id}`,
      target: "_blank",
      rel: "noopener",
      "aria-label": `Open a window as ${person.realName}`,
      title: "Open in a second window",
    },
    icon("open"),
  );
  return h("li", { class: "person-row" }, node, beside);
}

/** @param {PersonView} person */
function shownOnly(person) {
  const why = WHY_NOT[person.kind] ?? "Cannot act.";
  return h(
    "li",
    { class: "person-row" },
    h(
      "div",
      { class: "person person-disabled", "aria-disabled": "true", data: { person: person.id } },
      avatar(person, person.realName),
      words(person, why),
    ),
  );
}

/** @param {PersonView} person @param {string} line */
function words(person, line) {
  const groups = person.userGroups.map((id) => store.group(id)?.handle).filter((name) => name !== undefined);
  return h(
    "span",
    { class: "person-words" },
    h(
      "span",
      { class: "person-name" },
      person.realName,
      groups.map((name) => h("span", { class: "tag" }, `@${name}`)),
    ),
    h("span", { class: "person-title" }, line),
  );
}
