/**
 * SQL: under what name a person stands in the log, `person:` and a salted hash, and who that is. Each is a look-up by index of one name:
 * joined, or behind EXISTS, everybody that the log has ever named could be read for it.
 */

/** The name of the person with this Slack id; null: they were erased, or the log has never named them. */
export const namedAs = (userId: string): string =>
  `('person:' || (SELECT s.hash FROM audit_subjects s WHERE s.value = 'slack:' || ${userId}))`;

/** Who stands there under this name; null: nobody any more, or it names no person. */
export const personNamed = (name: string): string =>
  `(SELECT h.value FROM audit_subjects h WHERE ${name} LIKE 'person:%' AND h.hash = substr(${name}, ${"person:".length + 1}))`;

/** The person whom an event names so was erased since; named anew, they have another name. */
export const isErased = (name: string): string => `(${personNamed(name)} IS NULL)`;
