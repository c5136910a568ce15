/** A TCP proxy that a test can cut and mend: the service behind it goes on, but is away for whoever comes through here. */
import { createServer, type Server, type Socket, connect as tcp } from "node:net";
import { freePort } from "../../src/app/demo/ports.js";

export interface TcpProxy {
  readonly port: number;
  /** `url` with this proxy's address. */
  through(url: string): string;
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Accepts again, on the same port. */
  mend(): Promise<void>;
  /** Accepts and keeps connections but passes nothing on, as a network that swallows packets does. `cut` ends it. */
  stall(): void;
  /** Passes on what is asked and nothing that is answered, as a network that breaks in the middle of a statement does. `cut` ends it. */
  swallowAnswers(): void;
  stop(): Promise<void>;
}

export async function startProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  const host = target.hostname;
  const port = Number(target.port || (target.protocol.startsWith("redis") ? 6379 : 5432));
  const sockets = new Set<Socket>();
  let stalled = false;
  let mute = false;

  const server: Server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => client.destroy());
    client.on("close", () => sockets.delete(client));
    if (stalled) return;
    const upstream = tcp(port, host);
    sockets.add(upstream);
    upstream.on("error", () => client.destroy());
    upstream.on("close", () => {
      sockets.delete(upstream);
      client.destroy();
    });
    client.on("close", () => upstream.destroy());
    client.on("data", (bytes) => {
      if (!stalled) upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (!stalled && !mute) client.write(bytes);
    });
  });
  const listen = (wanted: number): Promise<void> =>
    new Promise((done, fail) => {
      server.once("error", fail);
      server.listen(wanted, "127.0.0.1", () => {
        server.off("error", fail);
        done();
      });
    });
  // Not one of those that systems give to outgoing connections: while this is cut, one of them would take it.
  const own = await freePort();
  await listen(own);

  const cut = async (): Promise<void> => {
    stalled = false;
    mute = false;
    if (server.listening) {
      const closed = new Promise<void>((done) => server.close(() => done()));
      for (const socket of sockets) socket.destroy();
      await closed;
    }
  };
  return {
    port: own,
    through: (url) => {
      const changed = new URL(url);
      changed.hostname = "127.0.0.1";
      changed.port = String(own);
      return changed.toString();
    },
    cut,
    mend: () => listen(own),
    stall: () => {
      stalled = true;
    },
    swallowAnswers: () => {
      mute = true;
    },
    stop: cut,
  };
}
