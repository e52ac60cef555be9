// Which repository a sandbox gets, where it is cloned from, and whether the credentials of its
// project are for that place. Pure.
import { REPOSITORY_URL } from '@berth/contract/sandboxes/fields.ts';
import { CodedError } from '../coded-error.ts';

/** The git hosts of the configuration. */
export interface GitHosts {
  /** What `owner/repo` is below, without a slash at its end. */
  baseUrl: string;
  /** Origins that full URLs may be on, as {@link originOf} gives them. */
  allowedOrigins: readonly string[];
}

export interface Repository {
  /** `owner/repo` or a full URL, as it was given. */
  repository: string;
  /** null: the one that the repository says. */
  branch: string | null;
}

interface Asked {
  repository?: string | null | undefined;
  branch?: string | null | undefined;
}

/**
 * The repository of a create: the request's, else the project's; null for none. The project's
 * branch goes with the project's repository alone; null in the request is none of it. Throws
 * `invalid_request` for a branch of no repository.
 */
export function chooseRepository(
  asked: Asked,
  defaults: { repository: string | null; branch: string | null },
): Repository | null {
  const own = asked.repository !== undefined;
  const repository = own ? asked.repository : defaults.repository;
  if (repository !== null && repository !== undefined)
    return { repository, branch: asked.branch === undefined ? (own ? null : defaults.branch) : asked.branch };

  if (asked.branch !== null && asked.branch !== undefined) {
    throw new CodedError(
      'invalid_request',
      'body.branch needs a repository: give body.repository, or the project a defaultRepository',
    );
  }

  return null;
}

/**
 * Where the repository is cloned from; null for a URL on a host that is not among the allowed ones.
 */
export function urlOf(repository: string, hosts: GitHosts): string | null {
  if (!REPOSITORY_URL.test(repository))
    return `${hosts.baseUrl}/${repository}${repository.endsWith('.git') ? '' : '.git'}`;
  return hosts.allowedOrigins.includes(originOf(repository)) ? repository : null;
}

/**
 * Throws `invalid_request` for a URL on a host that is not among the allowed ones; `where` names
 * the field.
 */
export function requireRepositoryAllowed(repository: string, hosts: GitHosts, where: string): void {
  if (urlOf(repository, hosts) !== null) return;
  const { allowedOrigins } = hosts;
  const also = allowedOrigins.length === 0 ? '' : `, or be a URL on ${allowedOrigins.join(' or ')}`;
  const origin = originOf(repository);
  // As the operator would write it: https needs no saying.
  const listed = origin.startsWith('https://') ? origin.slice('https://'.length) : origin;
  const how = `URLs on ${origin} are taken once the operator of this service lists ${listed} in BERTH_GIT_ALLOW_URLS`;
  throw new CodedError('invalid_request', `${where} must have the form owner/repo${also}; ${how}`);
}

/**
 * Whether a project's credentials are for that URL: they are for the host of its default
 * repository, or without one for the service's own git host, and are sent to no other, whatever a
 * create asks to be cloned.
 */
export function areCredentialsFor(url: string, defaultRepository: string | null, hosts: GitHosts): boolean {
  const home = defaultRepository !== null && REPOSITORY_URL.test(defaultRepository) ? defaultRepository : hosts.baseUrl;
  return originOf(url) === originOf(home);
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/** Scheme, host and port of a URL, in lower case, without the scheme's own port. */
export function originOf(url: string): string {
  const [, scheme = '', host = ''] = /^(https?):\/\/([^/]*)/.exec(url) ?? [];
  const suffix = DEFAULT_PORTS[scheme] ?? '';
  const lower = host.toLowerCase();
  return `${scheme}://${lower.endsWith(suffix) ? lower.slice(0, -suffix.length) : lower}`;
}
