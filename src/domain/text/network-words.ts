/** What went wrong with a connection, in words; the system's code stays in brackets, for whoever looks it up. */

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the other side broke it off",
  ECONNABORTED: "it was broken off",
  EPIPE: "the other side had closed it",
  ETIMEDOUT: "the other side did not answer in time",
  ESOCKETTIMEDOUT: "the other side did not answer in time",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the host's name could not be looked up just now",
  EAI_FAIL: "the host's name could not be looked up",
  EHOSTUNREACH: "there is no way to the host",
  EHOSTDOWN: "the host is down",
  ENETUNREACH: "there is no way to its network",
  ENETDOWN: "the network is down",
  EADDRNOTAVAIL: "this machine has no port left for it",
  EMFILE: "this process has too many connections open",
  EACCES: "this machine does not allow it",
  EPERM: "this machine does not allow it",
  EPROTO: "the other side does not speak TLS as expected",
  CERT_HAS_EXPIRED: "the host's certificate has expired",
  CERT_NOT_YET_VALID: "the host's certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the host's certificate is signed by nobody that is trusted",
  SELF_SIGNED_CERT_IN_CHAIN: "the host's certificate is signed by nobody that is trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the host's certificate is signed by nobody that is trusted",
  UNABLE_TO_GET_ISSUER_CERT: "the host's certificate is signed by nobody that is trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the host's certificate is signed by nobody that is trusted",
  ERR_TLS_CERT_ALTNAME_INVALID: "the host's certificate is for another name",
  UND_ERR_SOCKET: "the other side closed it",
  UND_ERR_CONNECT_TIMEOUT: "no connection came about in time",
  UND_ERR_HEADERS_TIMEOUT: "no answer began in time",
  UND_ERR_BODY_TIMEOUT: "the answer stopped in the middle",
  UND_ERR_RES_EXCEEDED_MAX_SIZE: "the answer is longer than is read",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "the answer is not as long as it says",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are longer than is read",
  UND_ERR_ABORTED: "it was stopped here",
  UND_ERR_DESTROYED: "it was closed here",
  UND_ERR_CLOSED: "it was closed here",
};

/** Codes that come in families. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^HPE_/u, "what came is no HTTP"],
  [/^(?:ERR_SSL_|ERR_TLS_)/u, "the other side does not speak TLS as expected"],
  [/^CERT_|_CERT(?:_|$)/u, "the host's certificate is not accepted"],
];

/** The rest of a sentence about a connection: "the other side broke it off (ECONNRESET)". Total: a code that is not known says only that it failed. */
export function networkWords(code: string): string {
  const words = Object.hasOwn(WORDS, code)
    ? WORDS[code]
    : FAMILIES.find(([family]) => family.test(code))?.[1];
  return `${words ?? "the connection failed"} (${code})`;
}
