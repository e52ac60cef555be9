// The operator's plan catalogue: validated, and copied for the confined API, which cannot read the
// original.
import { chown, readFile, rm } from 'node:fs/promises';
import { planCatalogue } from '@berth/contract/billing/plans.ts';
import { writeDurably } from '@berth/os/durable-file.ts';
import { messageOf } from '@berth/os/errors.ts';
import { OperatorFailure } from '../../output/failure.ts';
import type { InstancePaths } from '../../supervisor/instance.ts';
import type { ServiceUser } from '../../supervisor/service-user.ts';

/**
 * Copies the file for the supervisor's lifetime: a restarted API reads the same plans, even if the
 * file changes. Throws an {@link OperatorFailure} that names the file and the error.
 */
export async function copyPlansFile(file: string | null, paths: InstancePaths, user: ServiceUser): Promise<void> {
  if (file === null) {
    await rm(paths.plans, { force: true });
    return;
  }
  await writeDurably(paths.plans, `${JSON.stringify(await readPlans(file))}\n`, 0o640);
  await chown(paths.plans, 0, user.gid);
}

async function readPlans(file: string): Promise<unknown> {
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw wrong(file, messageOf(error), error);
  }
  const catalogue = planCatalogue.safeParse(content);
  if (catalogue.success) return catalogue.data;

  throw wrong(
    file,
    catalogue.error.issues.map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`).join('; '),
  );
}

function wrong(file: string, why: string, cause?: unknown): OperatorFailure {
  return new OperatorFailure(`cannot use the plan catalogue ${file}: ${why}`, {
    remedy: 'docs/operations.md has an example; set the file with --plans-file or BERTH_PLANS_FILE',
    cause,
  });
}
