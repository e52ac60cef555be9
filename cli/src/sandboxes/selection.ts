// Sandboxes of `berth sandbox sleep`, `wake` and `rm` that a filter selects instead of names.
import { SANDBOX_ACTION_RULES, type AllOptions, type SandboxData } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { tableLines } from '../output/table.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { SANDBOX_COLUMNS } from './view.ts';

export interface SelectionInput {
  all?: true;
  status?: string[];
  metadata?: Record<string, string>;
  endUser?: string;
  project?: string;
  yes?: true;
}

export type BulkAction = 'sleep' | 'wake' | 'destroy';

/** Rows of the table before the question. */
const MOST_SHOWN = 50;
const QUESTIONS: Readonly<Record<BulkAction, string>> = {
  sleep: 'Put these to sleep',
  wake: 'Wake these',
  destroy: 'Delete these permanently',
};

/**
 * Resolves with the sandboxes that the filter selects and the action changes, after a confirmation.
 * Throws a UsageError for an empty filter without `--all`.
 */
export async function selectSandboxes(
  context: CliContext,
  { all, status, metadata, endUser, project, yes }: SelectionInput,
  action: BulkAction,
): Promise<SandboxData[]> {
  const { connect, out, signal } = context;
  const own = {
    ...(status === undefined ? {} : { status: status as NonNullable<AllOptions['status']> }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
  };
  if (all === true && Object.keys(own).length > 0)
    throw new UsageError('--all cannot be combined with --status, --metadata or --end-user');
  const filter = { ...own, ...(project === undefined ? {} : { projectId: project }) };
  if (all !== true && Object.keys(filter).length === 0) {
    throw new UsageError('no sandboxes given', {
      remedy: 'name them, or use --status, --metadata, --end-user, --project or --all',
    });
  }
  const { berth, orgId } = await connect();
  const found: SandboxData[] = [];
  for await (const { data } of berth.sandboxes.all({ ...filter, orgId: await orgId(), signal }))
    if (isChangedBy(action, data)) found.push(data);
  if (found.length === 0) {
    out.note('no matching sandboxes');
    return found;
  }
  if (yes !== true) {
    showSelection(context, found);
    const doomed = action === 'sleep' ? found.filter(({ mode }) => mode === 'ephemeral').length : 0;
    const loss = doomed === 0 ? '' : `, and destroy the ephemeral ones (${doomed})`;
    await confirmLoss(context, `${QUESTIONS[action]}: ${found.length}${loss}?`, { wide: true });
  }
  return found;
}

/** Reports whether an option of the selection is present; `--project` alone also narrows names. */
export function isSelection({ all, status, metadata, endUser }: SelectionInput): boolean {
  return all === true || [status, metadata, endUser].some((option) => option !== undefined);
}

/** Reports whether the sandbox, as it is now, still matches the options of the selection. */
export function isStillSelected(
  { status, metadata = {}, endUser, project }: SelectionInput,
  now: SandboxData,
): boolean {
  return (
    (status === undefined || status.includes(now.status)) &&
    (endUser === undefined || now.endUserId === endUser) &&
    (project === undefined || now.projectId === project) &&
    Object.entries(metadata).every(([key, value]) => String(now.metadata[key]) === value)
  );
}

/** False if the sandbox is in the wanted state, or the service would refuse. */
export function isChangedBy(action: BulkAction, { status, wakesFrom }: SandboxData): boolean {
  const rules: Readonly<Record<string, string | undefined>> = SANDBOX_ACTION_RULES[action];
  return rules[status] === 'do' && (action !== 'wake' || wakesFrom !== null);
}

/** On stderr: stdout has the results. */
function showSelection({ out, stderr }: CliContext, found: readonly SandboxData[]): void {
  const width = stderr.isTTY ? stderr.columns || undefined : undefined;
  tableLines(SANDBOX_COLUMNS, found.slice(0, MOST_SHOWN), { width }).forEach((line) => out.note(line));
  if (found.length > MOST_SHOWN) out.note(`and ${found.length - MOST_SHOWN} more`);
}
