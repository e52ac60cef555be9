// `berth login`: signs in with a browser or an API key from stdin, and chooses the default org.
import { Berth, type Org } from '@berth/sdk';
import { browserOpener, openInBrowser } from '../interaction/browser.ts';
import { checkToken, readProfile, serviceUrl } from '../service/connection.ts';
import { awaitApproval } from '../service/device-flow.ts';
import { OAuthRefusal, requestDevice, type DeviceRequest } from '../service/oauth.ts';
import { profileIn, type Profile, type Profiles } from '../service/profile-file.ts';
import { isPlaintextRemote, serviceAddress } from '../service/address.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { prompt, canPrompt } from '../interaction/prompt.ts';
import { checkResourceId } from '../service/resource-id.ts';
import { readSecret } from '../interaction/secret-input.ts';
import type { Input } from '../program/command-spec.ts';

interface LoginOptions {
  withKey?: true;
  browser: boolean;
}

export async function login(context: CliContext, { options }: Input<LoginOptions>): Promise<void> {
  const { environment, flags, out, signal } = context;
  const { name, profile: before, file } = await readProfile({ environment, flags });
  const url = serviceUrl({ environment, flags }, before);
  const orgWanted = flags.org === undefined ? undefined : checkResourceId('org', flags.org);
  const projectWanted = flags.project === undefined ? undefined : checkResourceId('project', flags.project);
  // Fails before the user approves a sign-in that could not be stored.
  await file.change((current) => current, signal);
  const isKnown = before !== undefined && serviceAddress(before.url) === url;
  if (isPlaintextRemote(url) && !isKnown) {
    out.note(
      `${out.style('yellow', 'warning:', 'stderr')} ${url} is not encrypted: ` +
        'others on the network can read the token and act as you',
    );
  }
  const keep = async (changed: Omit<Profile, 'url'>): Promise<Profiles> =>
    await file.change((current) => withProfile(current, name, { url, ...changed }), signal);

  let credential: Pick<Profile, 'apiKey' | 'session'>;
  if (options.withKey === true) {
    credential = { apiKey: checkToken(await readSecret(context, 'API key'), 'stdin') };
  } else {
    credential = { session: await signInByDevice(context, url, options) };
    // Stored immediately, in case a later request fails.
    await keep({ ...credential, ...(isKnown ? usedOf(before) : {}) });
  }
  const berth = new Berth({ url, apiKey: credential.apiKey ?? credential.session?.token ?? '' });
  const identity = await berth.me({ signal });
  const orgs = await berth.orgs({ signal });
  const org = await chooseOrg(context, orgs, { url, wanted: orgWanted, before: isKnown ? before.orgId : undefined });
  const projectBefore = isKnown && org?.id === before.orgId ? before.projectId : undefined;
  const projectId = projectWanted ?? projectBefore;
  if (projectWanted !== undefined) {
    if (org === undefined) {
      throw new UsageError(`cannot use the project ${projectWanted}: no org chosen`, {
        remedy: 'name its org with --org ID',
      });
    }
    await berth.raw.getProject({ path: { orgId: org.id, projectId: projectWanted }, signal });
  }
  const { current } = await keep({
    ...credential,
    ...(org === undefined ? {} : { orgId: org.id }),
    ...(projectId === undefined ? {} : { projectId }),
  });

  const who = plainText(identity.email ?? identity.displayName ?? identity.id);
  out.line(`signed in to ${url} as ${who}${org === undefined ? '' : `, org ${org.id} (${plainText(org.name)})`}`);
  if (org === undefined) {
    out.note(
      orgs.length === 0
        ? 'no orgs yet; create one with berth org create NAME'
        : `you belong to ${orgs.length} orgs: list them with berth org ls, choose one with berth org use ID`,
    );
  }
  if (current !== name) {
    out.note(
      `the current profile is still ${current}: switch with berth profile use ${name}, or use --profile ${name}`,
    );
  }
  if ((environment['BERTH_API_KEY'] ?? '') !== '' && flags.profile === undefined)
    out.note('BERTH_API_KEY is set: commands use it instead of this sign-in');
}

function withProfile(current: Profiles, name: string, profile: Profile): Profiles {
  // The first profile becomes the current one.
  const used = profileIn(current, current.current) === undefined ? name : current.current;
  return { current: used, profiles: { ...current.profiles, [name]: profile } };
}

function usedOf({ orgId, projectId }: Profile): Pick<Profile, 'orgId' | 'projectId'> {
  return { ...(orgId === undefined ? {} : { orgId }), ...(projectId === undefined ? {} : { projectId }) };
}

async function signInByDevice(
  context: CliContext,
  url: string,
  { browser }: Pick<LoginOptions, 'browser'>,
): Promise<NonNullable<Profile['session']>> {
  const { out, signal, environment } = context;
  const place = { url, signal };
  const device = await requestDevice(place).catch((error: unknown) => {
    if (!(error instanceof OAuthRefusal)) throw error;
    const wait = error.retryAfter === undefined ? {} : { remedy: `try again in ${error.retryAfter} s` };
    throw new CliFailure(`cannot sign in: ${error.message} (${error.code})`, { ...wait, cause: error });
  });
  const bold = (text: string): string => out.style('bold', plainText(text), 'stderr');
  out.note(`To sign in, open this page, and approve it if it shows the code ${bold(device.userCode)}:`);
  out.note(`  ${bold(device.verificationUriComplete)}`);
  if (device.verificationUri !== device.verificationUriComplete)
    out.note(`On another device, open ${plainText(device.verificationUri)} and enter the code.`);
  const opener = browser && canPrompt(context) ? browserOpener(environment) : null;
  const ready = opener === null ? undefined : offerBrowser(context, opener, device);
  try {
    return await out.step('waiting for approval', async () => await awaitApproval(place, device));
  } finally {
    ready?.();
  }
}

/** Opens the page on Enter. Returns a function that cancels the offer. */
function offerBrowser(
  { stdin, out }: Pick<CliContext, 'stdin' | 'out'>,
  opener: string,
  { verificationUriComplete }: DeviceRequest,
): () => void {
  out.note('Press Enter to open the page in a browser.');
  const open = (): void => {
    void openInBrowser(opener, verificationUriComplete).then((opened) => {
      if (!opened) out.note(`cannot start ${opener}`);
    });
  };
  stdin.once('data', open).resume();
  return () => void stdin.off('data', open).pause();
}

/** Resolves with undefined if several orgs are possible and no terminal is available. */
async function chooseOrg(
  context: CliContext,
  orgs: readonly Org[],
  { url, wanted, before }: { url: string; wanted: string | undefined; before: string | undefined },
): Promise<Org | undefined> {
  if (wanted !== undefined) {
    const org = orgs.find(({ id }) => id === wanted);
    if (org !== undefined) return org;
    throw new CliFailure(`this account has no org ${wanted} at ${url}`, {
      remedy: 'berth org ls lists your orgs',
    });
  }
  const known = orgs.find(({ id }) => id === before);
  if (known !== undefined || orgs.length < 2) return known ?? orgs[0];
  if (!canPrompt(context)) return undefined;
  const { out } = context;
  orgs.forEach(({ id, name, role }, at) =>
    out.note(`${String(at + 1).padStart(4)}  ${plainText(name)}  ${out.style('dim', `${id}, ${role}`, 'stderr')}`),
  );
  for (;;) {
    const answer = await prompt(context, `Default org? [1-${orgs.length}] `);
    const chosen = /^\d+$/.test(answer)
      ? orgs[Number(answer) - 1]
      : orgs.find(({ id, name }) => id === answer || name === answer);
    if (chosen !== undefined) return chosen;
  }
}
