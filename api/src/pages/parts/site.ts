// Types of pages: a path with a GET handler and, for forms, a POST handler. pages.ts registers them
// on the server.
import type { Html } from '../../rules/html.ts';
import type { UserRow } from '../../services/people/accounts.ts';
import type { ServiceContext } from '../../services/context/context.ts';
import type { PageSignIn } from '../../services/people/factors-port.ts';
import type { Caller } from '../../services/people/sign-in-port.ts';

export interface Site {
  context: ServiceContext;
  signIn: PageSignIn;
  /**
   * Runs work after the response, so that the response time does not disclose its result. Failures
   * are logged; shutdown waits for it.
   */
  runInBackground(what: string, work: () => Promise<void>): void;
}

/** The person signed in in the browser. */
export interface SignedInVisitor {
  loginId: string;
  user: UserRow;
}

export interface SiteRequest {
  /** A query parameter; empty if absent. */
  query(name: string): string;
  /** The submitted form, unparsed. */
  form: unknown;
  /** A cookie of the browser; null if absent. */
  cookie(name: string): string | null;
  visitor: SignedInVisitor | null;
  caller: Caller;
  requestId: string;
}

export type PageAnswer = ShownPage | Redirect;

export interface ShownPage {
  kind: 'page';
  /** Default 200. */
  status?: number;
  title: string;
  content: Html;
  /** The submission failed, which the title then states first. */
  failed?: boolean;
  retryAfterSeconds?: number | undefined;
  /** `Set-Cookie` headers. */
  cookie?: string | readonly string[];
  /** Loads the script that runs passkey forms. */
  script?: true;
  /** Sources besides the service to which redirects may send its forms on. */
  formsLeadTo?: readonly string[];
}

interface Redirect {
  kind: 'redirect';
  /** A path of this service, or the address passed to {@link redirectElsewhere}. */
  to: string;
  cookie?: string | readonly string[];
}

export interface Page {
  path: string;
  get: (site: Site, request: SiteRequest) => Promise<PageAnswer>;
  /** Absent on pages without a form. */
  post?: (site: Site, request: SiteRequest) => Promise<PageAnswer>;
}

export function shown(
  title: string,
  content: Html,
  more: Omit<ShownPage, 'kind' | 'title' | 'content'> = {},
): ShownPage {
  return { kind: 'page', title, content, ...more };
}

/** Redirects to a path of this service, with GET. */
export function redirect(to: string, cookie?: string | readonly string[]): Redirect {
  return { kind: 'redirect', to, ...(cookie === undefined ? {} : { cookie }) };
}

/** Redirects to an address elsewhere, which the service itself made. */
export function redirectElsewhere(address: string): Redirect {
  return { kind: 'redirect', to: address };
}

export function pathWith(path: string, query: Readonly<Record<string, string>>): string {
  const kept = Object.entries(query).filter(([, value]) => value !== '');
  return kept.length === 0 ? path : `${path}?${new URLSearchParams(kept).toString()}`;
}
