// Completion values from the API and the profile file. Bounded in time; callers ignore failures.
import type { ConnectionSource } from '../service/connection.ts';
import { DEFAULT_PROFILE, ProfileFile } from '../service/profile-file.ts';
import { statusText } from '../processes/view.ts';
import type { Suggestion } from './completion-request.ts';

/** Longest acceptable delay of a key press. */
const DEADLINE_MS = 3_000;
/** Ids and profile names; excludes shell syntax. */
const SAFE_VALUE = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

type Source = 'sandbox' | 'process' | 'session' | 'conversation' | 'org' | 'project' | 'profile';

/** @param typedSandbox of processes */
export async function lookUp(what: Source, source: ConnectionSource, typedSandbox = ''): Promise<Suggestion[]> {
  const found = what === 'profile' ? await profiles(source) : await ofAccount(what, source, typedSandbox);
  return found.filter(({ value }) => SAFE_VALUE.test(value));
}

async function profiles({ environment }: ConnectionSource): Promise<Suggestion[]> {
  const { profiles, current } = await new ProfileFile(environment).read();
  const names = Object.keys(profiles).length === 0 ? [DEFAULT_PROFILE] : Object.keys(profiles);
  return names.map((value) => ({
    value,
    about: `${profiles[value]?.url ?? ''}${value === current ? ' (current)' : ''}`.trim(),
  }));
}

async function ofAccount(
  what: Exclude<Source, 'profile'>,
  source: ConnectionSource,
  typedSandbox: string,
): Promise<Suggestion[]> {
  const { connect } = await import('../service/connection.ts');
  const connection = await connect(source);
  const { berth, orgId } = connection;
  const signal = AbortSignal.timeout(DEADLINE_MS);
  if (what === 'org') return (await berth.orgs({ signal })).map(({ id, name }) => ({ value: id, about: name ?? '' }));
  if (what === 'process') {
    const { findSandbox } = await import('../service/find-sandbox.ts');
    const place = { connect: () => Promise.resolve(connection), flags: source.flags, signal };
    const id = await findSandbox(place, typedSandbox);
    const { processes } = await berth.raw.listProcesses({ path: { sandboxId: id }, signal });
    return processes.map((process) => ({
      value: process.id,
      about: `${process.name ?? process.command} (${statusText(process)})`,
    }));
  }
  const sessions: Suggestion[] = [];
  if (what === 'session' || what === 'conversation') {
    const page = await berth.agents.list({}, { signal });
    for (const { id, data } of page.sessions)
      sessions.push({ value: id, about: `${data.agentLabel} (${data.communication.status})` });
    if (what === 'session') return sessions;
  }
  const path = { orgId: await orgId() };
  if (what === 'project') {
    const { projects } = await berth.raw.listProjects({ path, signal });
    return projects.map(({ id, name }) => ({ value: id, about: name ?? '' }));
  }
  const { sandboxes } = await berth.raw.listSandboxes({ path, signal });
  const ids = sandboxes.map(({ id, name, status }) => ({ value: id, about: `${name} (${status})` }));
  const counts = new Map<string, number>();
  for (const { name } of sandboxes) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = sandboxes
    .filter(({ name }) => counts.get(name) === 1)
    .map(({ id, name, status }) => ({ value: name, about: `${id} (${status})` }));
  return [...sessions, ...names, ...ids];
}
