/** Every way in which the world moves on under an approval, between card and click and between click and dispatch. */
import { playDrifts } from "../e2e/support/drift.js";

playDrifts();
