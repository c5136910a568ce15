/**
 * What a schema cannot say of a policy file's content: which roles it names without having them, and which ids can be nobody's. They look at
 * the content as it was written, so that other mistakes in the file hide none of these.
 */
import { OPERATION_KINDS } from "../operation.js";

export interface PolicyProblem {
  /** Keys and indexes from the root of the file to the value that is wrong. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

type Path = readonly (string | number)[];

/** The value at `path` of parsed YAML or JSON, or undefined. */
export function valueAt(content: unknown, path: Path): unknown {
  let value = content;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

const listAt = (content: unknown, path: Path): readonly unknown[] => {
  const value = valueAt(content, path);
  return Array.isArray(value) ? value : [];
};

const keysAt = (content: unknown, path: Path): readonly string[] => {
  const value = valueAt(content, path);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
};

/** Approval lines and escalations that name a role which is not in the file. `always`: roles that every file has. */
export function missingRoles(content: unknown, always: readonly string[]): PolicyProblem[] {
  const known = new Set([...always, ...keysAt(content, ["roles"])]);
  const lines = OPERATION_KINDS.flatMap((kind) =>
    listAt(content, ["kinds", kind, "approval"]).map((_, index) => [
      "kinds",
      kind,
      "approval",
      index,
      "role",
    ]),
  );
  const escalations = listAt(content, ["approvals", "escalateTo"]).map((_, index) => [
    "approvals",
    "escalateTo",
    index,
  ]);
  return [...lines, ...escalations].flatMap((path) => {
    const name = valueAt(content, path);
    return typeof name === "string" && !known.has(name)
      ? [{ path, message: "must be one of the roles that the file names" }]
      : [];
  });
}

/** Slack's ids of people and of user groups. Stand-ins of Slack write them freer than Slack does. */
const ID_FORMS = [
  { list: "users", form: /^[UW][A-Za-z0-9_-]+$/, says: "a Slack user id (U… or W…)" },
  { list: "usergroups", form: /^S[A-Za-z0-9_-]+$/, says: "the Slack id of a user group (S…)" },
] as const;

/** Members of roles that nobody can be: a name, an address, an id in the wrong list. Who is meant could never approve. */
export function impossibleIds(content: unknown): PolicyProblem[] {
  return keysAt(content, ["roles"]).flatMap((role) =>
    ID_FORMS.flatMap(({ list, form, says }) =>
      listAt(content, ["roles", role, list]).flatMap((id, index) =>
        typeof id === "string" && !form.test(id)
          ? [{ path: ["roles", role, list, index], message: `must be ${says}` }]
          : [],
      ),
    ),
  );
}
