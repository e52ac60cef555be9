// Resolves URL and credential: flags, then BERTH_* variables, then the profile. Sends a credential
// only to its own service.
import { Berth, type Org, type Project } from '@berth/sdk';
import { CliFailure, EXIT, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { checkResourceId } from './resource-id.ts';
import { checkProfileName, ProfileFile, profileIn, type Profile } from './profile-file.ts';
import { serviceAddress } from './address.ts';
import { sessionToken } from './session.ts';
import { once } from './once.ts';

export interface ConnectionFlags {
  profile?: string;
  url?: string;
  org?: string;
  project?: string;
}

const DEFAULT_PORT = '4800';

export interface Connection {
  /** Without a trailing slash. */
  url: string;
  berth: Berth;
  /** Returns the bearer token of a request. */
  token: () => Promise<string>;
  /** `--org`, BERTH_ORG_ID, the profile's org, or the only one. */
  orgId: () => Promise<string>;
  /** Ids from flags, variables or the profile, without a request. */
  chosen: { orgId: string | undefined; projectId: string | undefined };
  /** `--project`, BERTH_PROJECT_ID, the profile's project, or the only one of the org. */
  projectId: () => Promise<string>;
  /** Source of the credential: BERTH_API_KEY or a profile. */
  credential: { kind: 'environment' } | { kind: 'profile'; name: string; signedIn: boolean };
}

export interface ConnectionSource {
  environment: Readonly<NodeJS.ProcessEnv>;
  flags: ConnectionFlags;
  signal?: AbortSignal | undefined;
}

/** Reads the selected profile, which may not exist. */
export async function readProfile({
  environment,
  flags,
}: ConnectionSource): Promise<{ name: string; profile: Profile | undefined; file: ProfileFile }> {
  const file = new ProfileFile(environment);
  const all = await file.read();
  const name = checkProfileName(flags.profile ?? (environment['BERTH_PROFILE'] || all.current));
  return { name, profile: profileIn(all, name), file };
}

/** Throws a CliFailure for a missing credential, or one of another service. Makes no request. */
export async function connect(source: ConnectionSource): Promise<Connection> {
  const { environment, flags, signal } = source;
  const { name, profile, file } = await readProfile(source);
  const url = serviceUrl(source, profile);
  const key = environment['BERTH_API_KEY'] ?? '';
  let token: () => Promise<string>;
  const byKey = key !== '' && flags.profile === undefined;
  if (byKey) {
    token = () => Promise.resolve(checkToken(key, 'BERTH_API_KEY'));
  } else if (profile?.apiKey === undefined && profile?.session === undefined) {
    throw new CliFailure(`not signed in${name === 'default' ? '' : ` with the profile '${name}'`}`, {
      remedy:
        'sign in with berth login, or set BERTH_API_KEY to an API key ' +
        '(./berth keys create makes one on the host of the service)',
      exitCode: EXIT.signIn,
    });
  } else {
    if (serviceAddress(profile.url) !== url) {
      throw new UsageError(`the profile '${name}' is signed in to ${profile.url}, not to ${url}`, {
        remedy: `sign in with berth login --profile NAME --url ${url}, or set BERTH_API_KEY`,
      });
    }
    const { apiKey } = profile;
    token =
      apiKey === undefined
        ? () => sessionToken({ file, name, url, signal })
        : () => Promise.resolve(checkToken(apiKey, file.path));
  }
  const berth = new Berth({ url, apiKey: token });
  // A key in BERTH_API_KEY may belong to another org than the profile.
  const used = byKey ? undefined : profile;
  const chosenOrg = given('org', flags.org ?? (environment['BERTH_ORG_ID'] || used?.orgId));
  // The profile's project belongs to the profile's org.
  const usedProject = chosenOrg === used?.orgId ? used?.projectId : undefined;
  const chosen = {
    orgId: chosenOrg,
    projectId: given('project', flags.project ?? (environment['BERTH_PROJECT_ID'] || usedProject)),
  };
  const orgId = once(async () => chosen.orgId ?? (await onlyOrg(berth, signal)));
  const projectId = once(async () => chosen.projectId ?? (await onlyProject(berth, await orgId(), signal)));
  const credential: Connection['credential'] = byKey
    ? { kind: 'environment' }
    : { kind: 'profile', name, signedIn: profile?.apiKey === undefined };
  return { url, berth, token, orgId, chosen, projectId, credential };
}

/** `--url`, BERTH_URL, the profile's URL or the local default, without a trailing slash. */
export function serviceUrl({ environment, flags }: ConnectionSource, profile: Profile | undefined): string {
  const given =
    flags.url ??
    (environment['BERTH_URL'] || profile?.url) ??
    `http://127.0.0.1:${environment['BERTH_PORT'] || DEFAULT_PORT}`;
  const url = URL.canParse(given) ? new URL(given) : null;
  const isAddress = url !== null && ['http:', 'https:'].includes(url.protocol) && url.search === '' && url.hash === '';
  if (!isAddress || url.username !== '' || url.password !== '') {
    const whose =
      flags.url === undefined ? (environment['BERTH_URL'] ? 'BERTH_URL' : 'the URL of the profile') : '--url';
    throw new UsageError(
      `${whose} '${plainText(given)}' is invalid: expected an http or https URL such as https://berth.example.com`,
    );
  }
  return serviceAddress(url.href);
}

function given(what: 'org' | 'project', id: string | undefined): string | undefined {
  return id === undefined || id === '' ? undefined : checkResourceId(what, id);
}

/** Throws a CliFailure for an invalid token. @param where source of the token, for the message */
export function checkToken(token: string, where: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CliFailure(`${where} has no valid API key: spaces, line breaks and non-ASCII characters are not allowed`, {
    exitCode: EXIT.signIn,
  });
}

async function onlyOrg(berth: Berth, signal?: AbortSignal): Promise<string> {
  const orgs = await berth.orgs({ signal });
  return only(orgs, { what: 'org', flag: '--org', use: 'berth org use' });
}

async function onlyProject(berth: Berth, orgId: string, signal?: AbortSignal): Promise<string> {
  const projects = await berth.projects.list({ orgId, signal });
  return only(projects, { what: 'project', flag: '--project', use: 'berth project use' });
}

function only(
  found: readonly (Org | Project)[],
  { what, flag, use }: { what: string; flag: string; use: string },
): string {
  const [first, ...others] = found;
  if (first !== undefined && others.length === 0) return first.id;
  const names = found.slice(0, 10).map(({ id, name }) => `${id} (${plainText(name ?? '')})`);
  throw new UsageError(
    `no ${what} chosen: there ${found.length === 0 ? 'is none' : `are ${found.length}: ${names.join(', ')}`}`,
    {
      remedy:
        found.length === 0 ? `create one with berth ${what} create` : `use ${flag} ID, or set a default with ${use} ID`,
    },
  );
}
