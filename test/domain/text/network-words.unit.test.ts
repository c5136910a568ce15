/** Nobody has to know what ECONNRESET is. */
import { describe, expect, it } from "vitest";
import { quarantineWords } from "../../../src/domain/quarantine-words.js";
import { networkWords } from "../../../src/domain/text/network-words.js";
import { readProblem } from "../../../src/payments/listing.js";

/** What Node and its HTTP client throw at a caller, as far as a payment call can meet it. */
const MET = [
  ...[
    "ECONNREFUSED",
    "ECONNRESET",
    "EPIPE",
    "ETIMEDOUT",
    "ENOTFOUND",
    "EAI_AGAIN",
    "EHOSTUNREACH",
    "ENETUNREACH",
  ],
  ...["UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_RES_EXCEEDED_MAX_SIZE", "UND_ERR_DESTROYED"],
  ...["HPE_INVALID_CONSTANT", "HPE_INVALID_HEADER_TOKEN", "ERR_SSL_WRONG_VERSION_NUMBER", "CERT_HAS_EXPIRED"],
  ...["DEPTH_ZERO_SELF_SIGNED_CERT", "ERR_TLS_CERT_ALTNAME_INVALID"],
];

describe("a code of the network", () => {
  it.each(MET)("%s has words of its own, and stays in brackets", (code) => {
    expect(networkWords(code)).toMatch(new RegExp(`^[a-z][A-Za-z' ,]+ \\(${code}\\)$`, "u"));
    expect(networkWords(code)).not.toContain("the connection failed");
  });

  it.each(["EWHATEVER", "Error", "toString", ""])("that is not known leaves a plain sentence: %j", (code) => {
    expect(networkWords(code)).toBe(`the connection failed (${code})`);
  });

  it("stands in the reading of a list, and in what waits for a person, without a name of ours before it", () => {
    const problem = readProblem({
      sent: true,
      status: null,
      headers: {},
      body: null,
      failure: { kind: "connection", code: "UND_ERR_SOCKET" },
    });
    expect(problem?.detail).toBe(
      "The provider could not be reached: the other side closed it (UND_ERR_SOCKET).",
    );
    expect(quarantineWords(`unknown_too_long: ${problem?.reason}: ${problem?.detail}`)).toBe(
      "The outcome is still unknown after the time set for that. When it was asked last, the provider could not be reached: the other side closed it (UND_ERR_SOCKET).",
    );
    expect(quarantineWords("unknown_too_long: timeout: The provider did not answer in time.")).toBe(
      "The outcome is still unknown after the time set for that. When it was asked last, the provider did not answer in time.",
    );
  });
});
