/** A share of the ways in which the world moves on under an approval; `npm run test:kills` plays all of them. */
import { playDrifts } from "./support/drift.js";

playDrifts([
  "the amount left no longer covers it",
  "what was paid was corrected",
  "the order moved to another customer",
  "the policy asks for more people",
]);
