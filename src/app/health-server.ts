/** The paths of a process that does not listen to Slack: health, metrics, webhooks. */
import { createServer } from "node:http";
import type { Logger } from "../domain/ports/logger.js";
import type { HttpRoutes } from "../slack/index.js";

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** @throws EADDRINUSE when the port is taken */
export async function startHealthServer(
  port: number,
  routes: HttpRoutes,
  log: Logger,
): Promise<HealthServer> {
  const server = createServer((req, res) => {
    const path = (req.url ?? "/").split("?", 1)[0] ?? "/";
    const route = routes[`${(req.method ?? "GET").toUpperCase()} ${path}`];
    if (route === undefined) {
      res.writeHead(404).end();
      return;
    }
    Promise.resolve(route(req, res)).catch((error: unknown) => {
      log.error({ err: error, path }, "a route failed");
      if (!res.headersSent) res.writeHead(500);
      res.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => resolve());
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
