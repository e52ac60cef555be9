// `berth open`: opens a page of the web console in a browser, or prints its address.
import { browserOpener, openInBrowser } from '../interaction/browser.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { checkResourceId } from '../service/resource-id.ts';

const PAGES = {
  sandbox: ['terminal', 'files', 'activity', 'previews', 'agents', 'metrics'],
  org: ['sandboxes', 'activity', 'usage', 'projects', 'members', 'api-keys', 'billing'],
  'agent session': [],
} as const;
type Kind = keyof typeof PAGES;

const FOLDERS: Readonly<Record<Kind, string>> = {
  sandbox: 'sandboxes',
  org: 'orgs',
  'agent session': 'agent-sessions',
};

export async function openConsole(
  context: CliContext,
  { args: [typed], options: { page } }: Input<{ page?: string }>,
): Promise<void> {
  const { connect, environment, out, signal } = context;
  const kind = kindOf(typed);
  const pages: readonly string[] = PAGES[kind];
  if (page !== undefined && !pages.includes(page)) {
    const allowed = pages.length === 0 ? 'it has none' : `allowed: ${pages.join(', ')}`;
    throw new UsageError(`--page ${page} is no page of the ${kind}; ${allowed}`);
  }
  const { berth, orgId } = await connect();
  const id =
    typed === undefined
      ? await orgId()
      : kind === 'sandbox'
        ? await findSandbox(context, typed)
        : checkResourceId(kind, typed);
  const { publicUrl, features } = await berth.raw.getService({ signal });
  if (!features.console)
    throw new CliFailure('the service has no web console', { remedy: 'its operator serves it with berth up' });

  // Named as the resource of the API.
  const part = page === 'billing' ? 'subscription' : page;
  const url = `${publicUrl}/console/${FOLDERS[kind]}/${id}${part === undefined ? '' : `/${part}`}`;
  if (out.json) out.object({ url });
  const opener = /^https?:\/\//.test(url) ? browserOpener(environment) : null;
  const opened = opener !== null && (await openInBrowser(opener, url));
  if (opened) out.note(`opened ${plainText(url)}`);
  else if (!out.json) out.line(plainText(url));
}

/** Ids of things without a page of their own. Other words may be names of sandboxes. */
const OTHER_ID = /^(?:prj|prv|prc|usr|inv)_/;

function kindOf(typed: string | undefined): Kind {
  if (typed === undefined || typed.startsWith('org_')) return 'org';
  if (typed.startsWith('ags_')) return 'agent session';
  if (!OTHER_ID.test(typed)) return 'sandbox';
  throw new UsageError(`'${plainText(typed)}' is no id of a sandbox, agent session or org`, {
    remedy: 'they start with sbx_, ags_ or org_',
  });
}
