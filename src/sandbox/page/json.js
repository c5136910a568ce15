/** Narrowing of Slack JSON: what is not there, or of another type, reads as its empty value. */
/** @import { JsonObject } from "../slack/control-types.js" */
import { decode } from "./text/mrkdwn.js";

/** @param {unknown} value @returns {value is JsonObject} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value @returns {JsonObject} */
export function obj(value) {
  return isObject(value) ? value : {};
}

/** @param {unknown} value @returns {JsonObject[]} */
export function list(value) {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** @param {unknown} value @returns {string} */
export function str(value) {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** @param {unknown} value @param {number} otherwise @returns {number} */
export function num(value, otherwise) {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

/** The text of a text object as it is read, or a bare string. @param {unknown} value @returns {string} */
export function textOf(value) {
  return isObject(value) ? decode(str(value["text"])) : str(value);
}
