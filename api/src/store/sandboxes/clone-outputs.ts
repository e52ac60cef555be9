// Rows of git's output, at most one for each sandbox until it is deleted. SQL only.
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** Sanitised output; `truncated`: earlier output is missing. */
export interface CloneOutput {
  text: string;
  truncated: boolean;
}

export async function findCloneOutput(db: Database, sandboxId: string): Promise<CloneOutput | undefined> {
  return await db
    .selectFrom('sandbox_clone_output')
    .select(['output as text', 'truncated'])
    .where('sandbox_id', '=', sandboxId)
    .executeTakeFirst();
}

/** Replaces the output of an earlier clone; null deletes it. Needs the sandbox's lock. */
export async function writeCloneOutput(
  trx: DatabaseTransaction,
  sandboxId: string,
  written: CloneOutput | null,
): Promise<void> {
  await trx.deleteFrom('sandbox_clone_output').where('sandbox_id', '=', sandboxId).execute();
  if (written === null) return;
  const { text: output, truncated } = written;
  await trx.insertInto('sandbox_clone_output').values({ sandbox_id: sandboxId, output, truncated }).execute();
}
