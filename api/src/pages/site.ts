// What a page is: a path with an answer to GET and, where it has forms, one to POST, to which they
// lead. Types only; pages.ts puts them on the server.
import type { Html } from '../rules/html.ts';
import type { UserRow } from '../services/people/accounts.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { Caller, SignIn } from '../services/people/sign-in-port.ts';

export interface Site {
  context: ServiceContext;
  signIn: SignIn;
  /**
   * Goes on with the work after the answer, which then does not tell by its time what the work
   * found. Failures are logged; a stop waits for it.
   */
  later(what: string, work: () => Promise<void>): void;
}

/** Who is signed in in the visitor's browser. */
export interface Visitor {
  loginId: string;
  user: UserRow;
}

export interface Visit {
  /** A parameter of the query; empty when it is absent. */
  query(name: string): string;
  /** What the form sent, as it was sent. */
  form: unknown;
  visitor: Visitor | null;
  caller: Caller;
  requestId: string;
}

export type PageAnswer = ShownPage | Redirect;

export interface ShownPage {
  kind: 'page';
  /** 200 unless it is another. */
  status?: number;
  title: string;
  content: Html;
  /** Something went wrong with what the form sent; the title says so first. */
  failed?: boolean;
  retryAfterSeconds?: number | undefined;
  /** A `Set-Cookie` header. */
  cookie?: string;
  /** Sources beside the service itself to which its forms may be sent on by redirects. */
  formsLeadTo?: readonly string[];
}

export interface Redirect {
  kind: 'redirect';
  /** A path of this service, or what {@link leave} was given. */
  to: string;
  cookie?: string;
}

export interface Page {
  path: string;
  get: (site: Site, visit: Visit) => Promise<PageAnswer>;
  /** Absent where the page has no form. */
  post?: (site: Site, visit: Visit) => Promise<PageAnswer>;
}

export function shown(
  title: string,
  content: Html,
  more: Omit<ShownPage, 'kind' | 'title' | 'content'> = {},
): ShownPage {
  return { kind: 'page', title, content, ...more };
}

/** To a path of this service, to be asked for with GET. */
export function redirect(to: string, cookie?: string): Redirect {
  return { kind: 'redirect', to, ...(cookie === undefined ? {} : { cookie }) };
}

/** Away from this service, to an address that the service itself made. */
export function leave(address: string): Redirect {
  return { kind: 'redirect', to: address };
}

/** A path with a query. */
export function pathWith(path: string, query: Readonly<Record<string, string>>): string {
  const kept = Object.entries(query).filter(([, value]) => value !== '');
  return kept.length === 0 ? path : `${path}?${new URLSearchParams(kept).toString()}`;
}
