// Finds the sandbox of a command by its id, its name or the start of its id.
import type { SandboxData } from '@berth/sdk';
import { LIST_LIMIT, NAME_CHARACTERS } from '@berth/sdk/limits';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Connection, ConnectionFlags } from './connection.ts';
import { isResourceId } from './resource-id.ts';

const TYPE = 'sbx_';
/** Used without a request. */
const WHOLE_ID = /^sbx_[a-z2-7]{24}$/;
/** Fewest characters of a prefix after `sbx_`; more if the command can lose data. */
const PREFIX_CHARACTERS = { min: 4, destructive: 8 };
/** Sandboxes in the error of an ambiguous name. */
const MOST_NAMED = 10;

interface Place {
  connect: () => Promise<Connection>;
  flags: ConnectionFlags;
  signal: AbortSignal;
}

/** No sandbox has the name or the start of the id. */
export class NoSandbox extends CliFailure {}

/**
 * Resolves with an id. A name takes precedence over a prefix. Throws NoSandbox if none is found,
 * and a UsageError if several are. @param destructive require a longer prefix
 */
export async function findSandbox(
  place: Place,
  typed = '',
  { destructive = false }: { destructive?: boolean } = {},
): Promise<string> {
  if (WHOLE_ID.test(typed)) return typed;
  if (typed === '' || typed.length > NAME_CHARACTERS) {
    throw new UsageError(`invalid sandbox '${plainText(typed)}': expected an id, a name or the start of an id`, {
      remedy: 'berth sandbox ls lists them',
    });
  }
  const { named, begun, where } = await search(place, typed);
  const shown = plainText(typed);
  const isPrefix = typed.startsWith(TYPE);
  // A name may look like the start of the id of another sandbox.
  if (named.count > 0 && !isPrefix) return only(named, `have the name '${shown}'`);
  if (named.count > 0) {
    const both = [...named.first, ...begun.first.filter(({ id }) => named.first.every((one) => one.id !== id))];
    return only({ first: both, count: Math.max(both.length, named.count) }, `have the name or start of id '${shown}'`);
  }
  if (isPrefix && begun.count > 0) {
    const least = destructive ? PREFIX_CHARACTERS.destructive : PREFIX_CHARACTERS.min;
    if (typed.length < TYPE.length + least) {
      const why = destructive ? ' for this command' : '';
      throw new UsageError(`'${shown}' is too short${why}: the start of an id has at least ${TYPE} and ${least} more`, {
        remedy: `use the name or the id: ${candidates(begun)}`,
      });
    }
    return only(begun, `have an id that begins with '${shown}'`);
  }
  throw new NoSandbox(
    `no sandbox of ${where} has the name '${shown}'${isPrefix ? ' or an id that begins with it' : ''}`,
    { remedy: 'berth sandbox ls lists them; a deleted sandbox is found only by its whole id' },
  );
}

/** Sandboxes that match; only the first are kept. */
interface Found {
  first: SandboxData[];
  count: number;
}

async function search(
  { connect, flags, signal }: Place,
  typed: string,
): Promise<{ named: Found; begun: Found; where: string }> {
  const { berth, orgId } = await connect();
  const org = await orgId();
  const project = flags.project === undefined ? {} : { projectId: flags.project };
  const named: Found = { first: [], count: 0 };
  const begun: Found = { first: [], count: 0 };
  const options = { orgId: org, q: typed, ...project, pageSize: LIST_LIMIT.max, signal };
  for await (const { data } of berth.sandboxes.all(options)) {
    if (data.name === typed) add(named, data);
    if (data.id.startsWith(typed)) add(begun, data);
  }
  return { named, begun, where: flags.project === undefined ? `the org ${org}` : `the project ${flags.project}` };
}

function add(found: Found, data: SandboxData): void {
  found.count += 1;
  if (found.first.length < MOST_NAMED) found.first.push(data);
}

function only(found: Found, what: string): string {
  const [first] = found.first;
  if (first !== undefined && found.count === 1) return checked(first.id);
  throw new UsageError(`${found.count} sandboxes ${what}: ${candidates(found)}`, { remedy: 'use an id' });
}

function candidates({ first, count }: Found): string {
  const listed = first.map(({ id, name, status }) => `${plainText(id)} (${plainText(name)}, ${plainText(status)})`);
  return `${listed.join(', ')}${count > listed.length ? ` and ${count - listed.length} more` : ''}`;
}

/** The id becomes an argument of ssh. */
function checked(id: string): string {
  if (isResourceId(id)) return id;
  throw new CliFailure(`the service returned an invalid sandbox id: '${plainText(id)}'`);
}
