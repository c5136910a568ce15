/** What stands in front of several processes of the product in HTTP mode: each request goes to the next of them. */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface Balancer {
  readonly port: number;
  /** Requests that each of the processes has got, in the order of their ports. */
  passed(): readonly number[];
  stop(): Promise<void>;
}

export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const passed = ports.map(() => 0);
  let next = 0;
  const server = createServer((req, res) => {
    const turn = next;
    next = (next + 1) % ports.length;
    passed[turn] = (passed[turn] ?? 0) + 1;
    const { method, url, headers } = req;
    const on = request({ host: "127.0.0.1", port: ports[turn], method, path: url, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    on.on("error", () => res.destroy());
    res.on("close", () => on.destroy());
    req.pipe(on);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    passed: () => [...passed],
    stop: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
