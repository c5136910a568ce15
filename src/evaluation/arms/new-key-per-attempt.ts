/** Sends a key, as the documentation asks, and makes a new one for each try: what an official client does that is called again. */
import { baseline } from "./baseline.js";

export const newKeyPerAttempt = baseline({
  name: "new-key-per-attempt",
  key: ({ world }) => world.ports.ids.next("key_"),
  before: async () => "send",
});
