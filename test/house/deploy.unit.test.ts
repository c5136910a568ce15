/** What docker-compose.yml, Dockerfile and .dockerignore say, against what the program knows: nothing here is built or started. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "./source.js";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const dockerfile = read("Dockerfile");
const ignored = read(".dockerignore")
  .split("\n")
  .filter((line) => line !== "");

const Service = z.looseObject({
  image: z.string().optional(),
  user: z.string().optional(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
  tmpfs: z.array(z.string()).default([]),
  read_only: z.boolean().optional(),
  stop_grace_period: z.string().optional(),
  restart: z.string().optional(),
  healthcheck: z.looseObject({ test: z.array(z.string()) }).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
});
const compose = z
  .looseObject({ services: z.record(z.string(), Service), volumes: z.record(z.string(), z.unknown()) })
  .parse(parse(read("docker-compose.yml"), { merge: true }));
const service = (name: string): z.output<typeof Service> => {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
};
const OURS = ["migrate", "app", "worker"] as const;

describe("docker-compose.yml", () => {
  it("has the two stores, the migrate step and the two roles", () => {
    expect(Object.keys(compose.services).sort()).toEqual(["app", "migrate", "postgres", "redis", "worker"]);
    expect(service("app").command).toEqual(["start", "--roles", "app"]);
    expect(service("worker").command).toEqual(["start", "--roles", "worker"]);
    expect(service("migrate").command).toEqual(["migrate", "--app-role", "countersign_app"]);
  });

  it("starts what works with rows after the migrations, and the migrations after a database that listens", () => {
    for (const name of ["app", "worker"]) {
      expect(service(name).depends_on).toEqual({
        migrate: { condition: "service_completed_successfully" },
        redis: { condition: "service_healthy" },
      });
      expect(service(name).restart).toBe("unless-stopped");
    }
    expect(service("migrate").depends_on).toEqual({ postgres: { condition: "service_healthy" } });
    // While the official image makes a cluster, its server answers on the local socket only.
    expect(service("postgres").healthcheck?.test).toEqual(expect.arrayContaining(["pg_isready", "-h"]));
  });

  it("runs the product as the role that owns nothing, and only the migrations as the owner", () => {
    const user = (name: string) =>
      /^postgresql:\/\/([a-z_]+):/.exec(service(name).environment["DATABASE_URL"] ?? "")?.[1];
    expect([user("app"), user("worker"), user("migrate")]).toEqual([
      "countersign_app",
      "countersign_app",
      "countersign",
    ]);
    expect(service("app").environment).not.toHaveProperty("APP_ROLE_PASSWORD");
  });

  it("names only variables that the program reads, and all that it needs", () => {
    const known = new Set(
      [...read("src/config/parse.ts").matchAll(/"([A-Z]+(?:_[A-Z]+)*)"/g)].map(([, name]) => name),
    );
    for (const name of OURS) {
      const variables = Object.keys(service(name).environment);
      expect(variables.filter((variable) => !known.has(variable))).toEqual([]);
    }
    const readme = read("README.md");
    const needed = readme.slice(readme.indexOf("Needed in production"), readme.indexOf("With a default"));
    const names = [...needed.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(8);
    for (const name of names) expect(Object.keys(service("app").environment)).toContain(name);
  });

  it("has no secret in it: what is secret comes from outside, and must", () => {
    for (const name of OURS) {
      for (const [variable, value] of Object.entries(service(name).environment)) {
        if (/PASSWORD|TOKEN|SECRET|KEY/.test(variable))
          expect(value, variable).toMatch(/^\$\{[A-Z_]+(?::\?|:-\})/);
      }
    }
  });

  it("mounts the policy's folder, so that a replaced file is seen", () => {
    for (const name of OURS) {
      const [mount = "", ...more] = service(name).volumes;
      expect(more).toEqual([]);
      const [from = "", to = "", mode] = mount.split(":");
      expect(from).not.toMatch(/\.ya?ml$/);
      expect(mode).toBe("ro");
      expect(service(name).environment["POLICY_FILE"]).toContain(`${to}/`);
    }
  });

  it("gives a process longer than its own bound to stop, and no right to write but its cache", () => {
    const bound = /STOP_WITHIN_MS = (\d+)_000/.exec(read("src/app/process.ts"))?.[1];
    for (const name of OURS) {
      expect(Number.parseInt(service(name).stop_grace_period ?? "0", 10)).toBeGreaterThan(Number(bound));
      expect(service(name)).toMatchObject({ read_only: true, tmpfs: ["/tmp"], cap_drop: ["ALL"] });
    }
  });
});

describe("Dockerfile", () => {
  const copies = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from = ""]) =>
    from.split(" "),
  );

  it("copies only what is there and what is not ignored", () => {
    expect(copies.length).toBeGreaterThan(8);
    for (const path of copies) {
      expect(existsSync(join(ROOT, path)), path).toBe(true);
      expect(
        ignored.some((entry) => path === entry || path.startsWith(`${entry}/`)),
        path,
      ).toBe(false);
    }
    for (const entry of ["node_modules", ".git", ".countersign", ".env", "test", "docs"])
      expect(ignored).toContain(entry);
  });

  it("brings every folder that the program reads at run time", () => {
    const last = dockerfile.slice(dockerfile.lastIndexOf("FROM "));
    for (const path of ["bin", "prisma", "policies", "src", "scripts/ensure-generated.mjs", "policy.yaml"]) {
      expect(last, path).toMatch(new RegExp(`^COPY .*\\b${path.replace(/[.]/g, "\\.")}\\b`, "m"));
    }
    expect(last).toContain("COPY --from=build /app/src/db/generated ./src/db/generated");
  });

  it("runs no install script, and brings the loader's compiler, which is an optional package", () => {
    const installs = [...dockerfile.matchAll(/npm ci[^\n\\]*/g)].map(([text]) => text);
    expect(installs).toHaveLength(2);
    for (const install of installs) expect(install).toContain("--ignore-scripts");
    const lock = z
      .object({ packages: z.record(z.string(), z.looseObject({ optional: z.boolean().optional() })) })
      .parse(JSON.parse(read("package-lock.json")));
    expect(lock.packages["node_modules/@esbuild/linux-x64"]?.optional).toBe(true);
    expect(installs[1]).toContain("--omit=optional");
    expect(dockerfile).toContain("COPY --from=build /app/node_modules/@esbuild ./node_modules/@esbuild");
  });

  it("is run by an ordinary user and asked for its health", () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(/^HEALTHCHECK [\s\S]*\/healthz/m);
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", "bin\/countersign\.js"\]$/m);
  });
});
