import { clean } from "./safe.js";

/** Nothing that anybody could read: blanks, invisible characters, or nothing. */
export const isBlankText = (text: string): boolean => clean(text).trim() === "";
