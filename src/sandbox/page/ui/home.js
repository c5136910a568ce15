/** The app's home: the tab that the app publishes for this person, and the way to its messages. */
import { renderBlocks } from "../blocks/render.js";
import { Surface } from "../blocks/surface.js";
import { byId, fill, focusAction, focusedAction, h } from "../dom.js";
import { openAppMessages } from "../route.js";
import { store } from "../store.js";
import { avatar } from "./avatar.js";

/** @type {{ key: string, surface: Surface } | null} */
let shown = null;

export function setUpHome() {
  store.on(["workspace", "home", "place", "people"], draw);
  byId("home-messages").addEventListener("click", () => void openAppMessages());
}

function draw() {
  const panel = byId("home");
  panel.hidden = store.place.kind !== "home";
  const workspace = store.workspace;
  if (panel.hidden || workspace === null) return;
  document.title = `${workspace.app.name} · ${workspace.me.realName}`;
  fill(
    byId("home-title"),
    avatar(store.person(workspace.app.botUserId), workspace.app.name, "small"),
    workspace.app.name,
  );
  const { home } = workspace;
  const body = byId("home-body");
  if (!home.published || home.viewId === null) {
    shown = null;
    fill(
      body,
      h(
        "p",
        { class: "empty" },
        `${workspace.app.name} has not published a home for ${workspace.me.realName} yet. It does so when this page is opened, and only for those it serves.`,
      ),
    );
    return;
  }
  const key = `${store.as}/${home.viewId}`;
  const values = shown?.key === key ? shown.surface.values() : {};
  const focus = focusedAction(body);
  const surface = new Surface("home", { viewId: home.viewId });
  fill(body, renderBlocks(home.blocks, surface));
  surface.restore(values);
  shown = { key, surface };
  // What had the focus may be decided and gone: then the page has it, and never another approval's button.
  if (focus !== null && !focusAction(body, focus)) body.focus({ preventScroll: true });
}
