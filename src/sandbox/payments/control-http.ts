/** The control API over HTTP: JSON in, JSON out, the same names as in process. */
import { z } from "zod";
import {
  advanceSchema,
  dashboardRefundSchema,
  type PaymentsControl,
  seedPaymentSchema,
  seedSubscriptionSchema,
} from "./control.js";
import { faultSpecSchema } from "./faults.js";
import { promisesSchema } from "./promises.js";
import type { Reply } from "./reply.js";
import { WireError } from "./wire-error.js";

const forgerySchema = z.strictObject({
  secret: z.string().optional(),
  skewSeconds: z.int().optional(),
  withoutHeader: z.boolean().optional(),
  tamper: z.boolean().optional(),
});
const orderSchema = z.enum(["created", "reversed", "shuffled"]);
const modeSchema = z.strictObject({
  paused: z.boolean().optional(),
  extraCopies: z.int().min(0).max(20).optional(),
  delayMs: z.int().min(0).optional(),
  order: orderSchema.optional(),
});

type Handler = (
  control: PaymentsControl,
  input: { body: unknown; query: URLSearchParams; id: string },
) => unknown;

/** Method and path; `:id` stands for one segment. */
const ROUTES: readonly [method: string, path: string, handler: Handler][] = [
  ["GET", "/faults", (control) => ({ faults: control.faults() })],
  [
    "POST",
    "/faults",
    (control, { body }) => {
      const id = control.arm(faultSpecSchema.parse(body));
      return control.fault(id);
    },
  ],
  ["GET", "/faults/:id", (control, { id }) => control.fault(id)],
  ["DELETE", "/faults/:id", (control, { id }) => ({ disarmed: control.disarm(id) })],
  [
    "DELETE",
    "/faults",
    (control) => {
      control.disarmAll();
      return { faults: control.faults() };
    },
  ],
  ["GET", "/payments", async (control) => ({ payments: await control.payments() })],
  [
    "POST",
    "/payments",
    async (control, { body }) => ({ charge: await control.seedPayment(seedPaymentSchema.parse(body)) }),
  ],
  [
    "POST",
    "/payments/:id/dispute",
    async (control, { body, id }) => {
      const { disputed } = z.strictObject({ disputed: z.boolean().default(true) }).parse(body);
      await control.dispute(id, disputed);
      return { disputed };
    },
  ],
  ["GET", "/subscriptions", async (control) => ({ subscriptions: await control.subscriptions() })],
  [
    "POST",
    "/subscriptions",
    async (control, { body }) => {
      await control.seedSubscription(seedSubscriptionSchema.parse(body));
      return { seeded: true };
    },
  ],
  [
    "GET",
    "/effects",
    async (control, { query }) => ({
      effects: await control.effects({
        ...optional("operationId", query.get("operation_id")),
        ...optional("paymentIntent", query.get("payment_intent")),
      }),
    }),
  ],
  ["GET", "/counts", (control) => control.counts()],
  [
    "GET",
    "/requests",
    async (control, { query }) => ({
      requests: await control.requests({
        ...optional("method", query.get("method")),
        ...optional("path", query.get("path")),
        ...optional("paymentIntent", query.get("payment_intent")),
        afterOrdinal: z.coerce
          .number()
          .int()
          .min(0)
          .parse(query.get("after") ?? "0"),
      }),
    }),
  ],
  [
    "POST",
    "/dashboard/refunds",
    (control, { body }) => control.dashboardRefund(dashboardRefundSchema.parse(body)),
  ],
  [
    "POST",
    "/refunds/:id/advance",
    (control, { body, id }) => {
      const { status, pendingReason, failureReason } = advanceSchema.parse(body);
      return control.advanceRefund(id, {
        status,
        ...(pendingReason === undefined ? {} : { pendingReason }),
        ...(failureReason === undefined ? {} : { failureReason }),
      });
    },
  ],
  ["GET", "/promises", (control) => control.promises()],
  [
    "POST",
    "/promises",
    (control, { body }) => {
      control.setPromises(withoutUndefined(promisesSchema.partial().parse(body)));
      return control.promises();
    },
  ],
  [
    "POST",
    "/clock",
    (control, { body }) => {
      const input = z.strictObject({ offsetMs: z.int(), signatures: z.boolean().default(true) }).parse(body);
      control.setClockOffsetMs(input.offsetMs, { signatures: input.signatures });
      return { offsetMs: control.clockOffsetMs() };
    },
  ],
  [
    "POST",
    "/keys/expire",
    async (control, { body }) => {
      const { key } = z.strictObject({ key: z.string().optional() }).parse(body);
      return { forgotten: await control.expireKeys(key) };
    },
  ],
  [
    "POST",
    "/webhooks/target",
    (control, { body }) => {
      control.setWebhook(
        z
          .strictObject({ url: z.url(), secret: z.string().min(1) })
          .nullable()
          .parse(body),
      );
      return { set: true };
    },
  ],
  [
    "POST",
    "/webhooks/mode",
    (control, { body }) => control.webhookMode(withoutUndefined(modeSchema.parse(body))),
  ],
  [
    "POST",
    "/webhooks/flush",
    async (control, { body }) => {
      const input = z
        .strictObject({ order: orderSchema.optional(), copies: z.int().min(1).max(20).optional() })
        .parse(body);
      return { deliveries: await control.flushWebhooks(withoutUndefined(input)) };
    },
  ],
  [
    "GET",
    "/webhooks",
    async (control) => ({ events: await control.events(), deliveries: control.deliveries() }),
  ],
  [
    "POST",
    "/webhooks/:id/resend",
    async (control, { body, id }) => ({
      status: await control.resendWebhook(id, withoutUndefined(forgerySchema.parse(body))),
    }),
  ],
  [
    "POST",
    "/webhooks/forge",
    async (control, { body }) => {
      const input = z
        .strictObject({
          type: z.string(),
          id: z.string().optional(),
          object: z.record(z.string(), z.unknown()),
          forgery: forgerySchema.default({}),
        })
        .parse(body);
      const event = { type: input.type, object: input.object, ...optional("id", input.id ?? null) };
      return { status: await control.forgeWebhook(event, withoutUndefined(input.forgery)) };
    },
  ],
  [
    "POST",
    "/settle",
    async (control) => {
      await control.settle();
      return { settled: true };
    },
  ],
  [
    "POST",
    "/reset",
    async (control) => {
      await control.reset();
      return { reset: true };
    },
  ],
];

/** Never throws for what the caller sent: 400 names the problem, 404 an unknown path. */
export async function handleControl(
  control: PaymentsControl,
  method: string,
  path: string,
  query: URLSearchParams,
  body: string,
): Promise<Reply> {
  for (const [routeMethod, routePath, handler] of ROUTES) {
    if (routeMethod !== method) continue;
    const id = matchPath(routePath, path);
    if (id === null) continue;
    try {
      const parsed: unknown = body === "" ? {} : JSON.parse(body);
      return json(200, (await handler(control, { body: parsed, query, id })) ?? { error: "not found" });
    } catch (error) {
      if (error instanceof WireError) return json(error.status, error.body);
      if (error instanceof z.ZodError) return json(400, { error: z.prettifyError(error) });
      return json(400, { error: error instanceof Error ? error.message : String(error) });
    }
  }
  return json(404, { error: `there is no control ${method} ${path}` });
}

/** The segment at `:id`, "" where the path has none, null where it does not match. */
function matchPath(pattern: string, path: string): string | null {
  const expected = pattern.split("/");
  const actual = path.split("/");
  if (expected.length !== actual.length) return null;
  let id = "";
  for (let i = 0; i < expected.length; i += 1) {
    const part = actual[i] ?? "";
    if (expected[i] === ":id") id = decodeURIComponent(part);
    else if (expected[i] !== part) return null;
  }
  return id;
}

const json = (status: number, value: unknown): Reply => ({
  status,
  body: JSON.stringify(value, null, 2),
  headers: {},
});

function optional<K extends string>(name: K, value: string | null): { [P in K]?: string } {
  return (value === null ? {} : { [name]: value }) as { [P in K]?: string };
}

/** Drops members that are undefined, which is not the same as absent. */
function withoutUndefined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
