/** Starts `provider-stub.mjs` and asks it how many refunds it made. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { z } from "zod";

export interface ProviderStub {
  readonly url: string;
  made(): Promise<number>;
  stop(): Promise<void>;
}

const countSchema = z.object({ made: z.number() });

export async function startProviderStub(): Promise<ProviderStub> {
  const child = fork(fileURLToPath(new URL("./provider-stub.mjs", import.meta.url)), [], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    execArgv: [],
  });
  const [chunk] = (await once(child.stdout ?? child, "data")) as [Buffer];
  const url = `http://127.0.0.1:${Number(chunk.toString())}`;
  return {
    url,
    made: async () => countSchema.parse(await (await request(`${url}/count`)).body.json()).made,
    stop: async () => {
      const gone = once(child, "exit");
      child.disconnect();
      await gone;
    },
  };
}
