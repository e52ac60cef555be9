// `berth doctor`: checks this computer and prints remedies. Makes no lasting changes.
import { fault } from '../doctor/check.ts';
import type { Check, Finding, Grade } from '../doctor/check.ts';
import { dataFolderCheck, secretsCheck, supervisorCheck } from '../doctor/instance-checks.ts';
import { machineChecks } from '../doctor/machine-checks.ts';
import { commandHint } from '../output/command-hint.ts';
import { encryptionCheck, portCheck } from '../roles/control-plane/checks.ts';
import { databaseCheck } from '../roles/database/checks.ts';
import { networkChecks } from '../roles/host/network-checks.ts';
import { vmChecks } from '../roles/host/vm-checks.ts';
import type { VerbContext } from './context.ts';

/** Returns exit code 1 if there is a fault. */
export async function doctor({ config, environment, progress, print, signal }: VerbContext): Promise<number> {
  const checks = [
    ...machineChecks(config),
    ...[supervisorCheck, portCheck, dataFolderCheck, secretsCheck, databaseCheck].map((check) => check(config)),
    encryptionCheck(config, environment),
    ...networkChecks(config),
    ...vmChecks(config, environment, signal),
  ];
  const findings: Finding[] = [];
  const again = commandHint('doctor', config);
  for (const check of checks) findings.push(...(await progress.step(check.subject, () => runCheck(check, again))));

  findings.flatMap(lines).forEach(print);
  const count = (grade: Grade): number => findings.filter((finding) => finding.grade === grade).length;
  print('');
  print(`${count('ok')} ok, ${count('warn')} warnings, ${count('fault')} faults`);
  return count('fault') === 0 ? 0 : 1;
}

/** @param again command of another run */
async function runCheck(check: Check, again: string): Promise<Finding[]> {
  try {
    return await check.run();
  } catch (error) {
    return [fault(check.subject, (error as Error).message, `fix the reported faults, then run ${again} again`)];
  }
}

/** A line for the finding, and one below for its remedy. */
function lines({ subject, grade, detail, remedy }: Finding): string[] {
  const first = `${grade.padEnd(6)} ${subject.padEnd(16)} ${detail}`;
  return remedy === undefined ? [first] : [first, `${' '.repeat(24)}-> ${remedy}`];
}
