// `berth activity`: prints a page of the feed, all pages, new entries as they arrive, or an export.
import { HOLD_SECONDS, LIST_LIMIT } from '@berth/sdk/limits';
import type { ActivityEntry, ActivityPage, ActivityQuery, NewActivity } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Column } from '../output/table.ts';
import { instant } from '../output/time.ts';
import { repeat, tolerant } from '../interaction/repeat.ts';
import type { Input } from '../program/command-spec.ts';

interface ActivityInput {
  limit?: number;
  all?: boolean;
  follow?: boolean;
  export?: boolean;
  after?: string;
  kind?: string;
  sandbox?: string;
  project?: string;
}

type Read = (limit: number, after?: string) => Promise<ActivityPage>;

const SHOWN = 20;
/** Pause between the requests of --follow, of which each is held until there are entries. */
const INTERVAL_SECONDS = 1;

export async function showActivity(context: CliContext, { options }: Input<ActivityInput>): Promise<number | void> {
  const { connect, out, signal, stdout } = context;
  const { limit, all, follow } = options;
  if (all === true && limit !== undefined) throw new UsageError('--all cannot be combined with --limit');
  if (all === true && follow === true) throw new UsageError('--follow cannot be combined with --all');
  if (options.export === true) {
    const other = (['limit', 'all', 'follow', 'kind', 'sandbox', 'project'] as const).find((name) => name in options);
    if (other !== undefined) throw new UsageError(`--export cannot be combined with --${other}`);
  } else if (options.after !== undefined) {
    throw new UsageError('--after requires --export');
  }
  const { berth, orgId } = await connect();
  const org = await orgId();
  if (options.export === true) {
    for await (const entry of berth.activity.export(options.after, { orgId: org, signal })) out.objectLine(entry);
    return;
  }
  const filter = {
    ...(options.kind === undefined ? {} : { kind: options.kind as ActivityQuery['kind'] & string }),
    ...(options.sandbox === undefined ? {} : { sandboxId: await findSandbox(context, options.sandbox) }),
    ...(options.project === undefined ? {} : { projectId: options.project }),
  };
  const read: Read = async (count, after) => {
    const query = { ...filter, limit: count, ...(after === undefined ? {} : { after }) };
    return await berth.raw.listActivity({ path: { orgId: org }, query, signal });
  };
  if (follow === true) {
    return await followFeed(context, {
      latest: () => read(limit ?? SHOWN),
      since: (cursor) => {
        const { kind, ...named } = filter;
        const query = { ...named, ...(kind === undefined ? {} : { kind: [kind] }) };
        return berth.activity.since(cursor, query, { orgId: org, signal, waitSeconds: HOLD_SECONDS.max });
      },
    });
  }
  if (all === true) {
    await showAll(context, read);
    return;
  }
  const page = await read(limit ?? SHOWN);
  if (out.json) return out.object(page);
  out.table(COLUMNS, page.activity, 'no activity');
  if (page.hasMore && stdout.isTTY) out.note('more entries exist: use --limit N or --all');
}

/** Prints page by page, in columns of typical width, to keep no page in memory. */
async function showAll({ out }: CliContext, read: Read): Promise<void> {
  let after: string | undefined;
  do {
    const page = await read(LIST_LIMIT.max, after);
    if (out.json) out.object(page);
    else out.table(COLUMNS, page.activity, 'no activity', { titles: after === undefined });
    after = page.hasMore ? (page.nextCursor ?? undefined) : undefined;
  } while (after !== undefined);
}

/** The latest entries, oldest first, then each new one. Retries while the service restarts. */
async function followFeed(
  { out, signal }: CliContext,
  { latest, since }: { latest: () => Promise<ActivityPage>; since: (cursor?: string) => Promise<NewActivity> },
): Promise<number> {
  let titles = true;
  const show = (entries: readonly ActivityEntry[]): void => {
    if (out.json) entries.forEach((entry) => out.objectLine(entry));
    else if (entries.length > 0) out.table(COLUMNS, entries, '', { titles });
    titles &&= entries.length === 0;
  };
  let cursor: string | undefined;
  // Entries committed between the first cursor and the page are in both.
  let shown = new Set<string>();
  const look = async (): Promise<void> => {
    if (cursor === undefined) {
      const place = (await since()).cursor;
      const { activity } = await latest();
      show(activity.toReversed());
      shown = new Set(activity.map(({ id }) => id));
      cursor = place;
    } else {
      const found = await since(cursor);
      show(found.activity.filter(({ id }) => !shown.has(id)));
      cursor = found.cursor;
    }
  };
  const poll = tolerant(look, {
    failed: ({ message }) => out.note(`berth: ${plainText(message)}; retrying`),
    recovered: () => out.note('berth: the service responds again'),
  });
  return await repeat({ intervalSeconds: INTERVAL_SECONDS, signal }, async () => void (await poll()));
}

/** Minimum widths, so that the tables of consecutive pages align. */
const COLUMNS: readonly Column<ActivityEntry>[] = [
  { title: 'at', value: ({ at }) => instant(at), cells: 20, least: 20 },
  {
    title: 'kind',
    value: ({ kind }) => kind,
    cells: 25,
    least: 20,
    style: ({ kind }) => (kind.endsWith('_failed') ? 'red' : undefined),
  },
  { title: 'subject', value: ({ subject }) => subject.id, cells: 28, least: 12 },
  {
    title: 'actor',
    value: ({ actor }) => actor.id ?? actor.userId ?? actor.kind,
    cells: 28,
    least: 10,
    optional: true,
  },
  { title: 'details', value: ({ reason, details }) => reason ?? detailsText(details), least: 12, optional: true },
];

function detailsText(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
