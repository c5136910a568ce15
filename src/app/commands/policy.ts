import { parseConfig } from "../../config/index.js";
import { formatMoney, money } from "../../domain/money.js";
import { OPERATION_KINDS, type OperationKind } from "../../domain/operation.js";
import { recordPolicyActivated } from "../../ledger/index.js";
import { checkPolicyFile, explainDecision, explanationJson, watchPolicyFile } from "../../policy/index.js";
import { sealsOf } from "../compose/seals.js";
import { CommandFailure, EXIT_BAD_USAGE, EXIT_CHECK_FAILED } from "../exit.js";
import { print, printJson } from "../output.js";
import { withDb } from "./open.js";

/** `countersign policy check FILE` */
export async function check(file: string): Promise<void> {
  const result = await checkPolicyFile(file);
  if (!result.ok) {
    const { error } = result;
    throw new CommandFailure(error.message, error.unreadable ? EXIT_BAD_USAGE : EXIT_CHECK_FAILED);
  }
  for (const { line, text } of result.notices) {
    print(`Note: ${file}${line === null ? "" : `, line ${line}`}: ${text}`);
  }
  print(`${file} is valid. Hash ${result.hash}.`);
}

/** `countersign policy explain`: what the gate would answer now, under the file of POLICY_FILE. */
export async function explain(options: {
  kind: string;
  order: string;
  amount?: bigint;
  json?: boolean;
}): Promise<void> {
  const kind = kindOf(options.kind);
  if (kind === "refund" && options.amount === undefined) {
    throw new CommandFailure("A refund needs --amount in minor units.", EXIT_BAD_USAGE);
  }
  const { policyFile, seals } = parseConfig(["seals"]);
  await withDb(async (db) => {
    const watch = await watchPolicyFile({
      db,
      file: policyFile,
      record: recordPolicyActivated(sealsOf(seals)),
    });
    await watch.stop();
    const explanation = await explainDecision(db, {
      kind,
      ref: options.order,
      amountMinor: options.amount ?? 0n,
    });
    if (options.json === true) {
      printJson(explanationJson(explanation));
      return;
    }
    const { subject, judgement } = explanation;
    const amount =
      subject.intent.amountMinor === 0n
        ? ""
        : ` of ${formatMoney(money(subject.intent.amountMinor, subject.intent.currency))}`;
    print(`${kind}${amount} on ${options.order}: ${judgement.answer}`);
    for (const rule of judgement.rules)
      print(`  ${rule.verdict.padEnd(6)} ${rule.rule.padEnd(14)} ${rule.sentence}`);
  });
}

function kindOf(text: string): OperationKind {
  const kind = OPERATION_KINDS.find((one) => one === text);
  if (kind === undefined) {
    throw new CommandFailure(
      `"${text}" is no kind. There are: ${OPERATION_KINDS.join(", ")}.`,
      EXIT_BAD_USAGE,
    );
  }
  return kind;
}
