import { describe, expect, it } from "vitest";
import { missingText } from "../../src/ops/form-text.js";

describe("the evidence of a form", () => {
  it.each(["-", "x", "none", "N/A", "…", " nothing. ", ""])("%j names none", (evidenceRef) => {
    expect(missingText({ reason: "seen", evidenceRef })).toMatchObject({ field: "evidence" });
  });

  it.each(["re_1", "case 7", "their page", "返金 12"])("%j is taken", (evidenceRef) => {
    expect(missingText({ reason: "seen", evidenceRef })).toBeNull();
  });
});
