// Selects a sandbox's repository, its clone URL, and whether the project's credentials apply to
// that URL. Pure.
import { REPOSITORY_URL } from '@berth/contract/sandboxes/fields.ts';
import { invalidField } from '../coded-error.ts';

/** The configured git hosts. */
export interface GitHosts {
  /** Prefix of `owner/repo`, without a trailing slash. */
  baseUrl: string;
  /** Origins allowed in full URLs, in the form of {@link originOf}. */
  allowedOrigins: readonly string[];
}

export interface Repository {
  /** `owner/repo` or a full URL, as given. */
  repository: string;
  /** null: the repository's default branch. */
  branch: string | null;
}

interface RequestedClone {
  repository?: string | null | undefined;
  branch?: string | null | undefined;
}

/**
 * The repository of a create request, or else the project's default; null for none. The project's
 * branch applies to the project's repository only; null in the request means no repository. Throws
 * `invalid_request` for a branch without a repository.
 */
export function chooseRepository(
  requested: RequestedClone,
  defaults: { repository: string | null; branch: string | null },
): Repository | null {
  const own = requested.repository !== undefined;
  const repository = own ? requested.repository : defaults.repository;
  if (repository !== null && repository !== undefined)
    return { repository, branch: requested.branch === undefined ? (own ? null : defaults.branch) : requested.branch };

  if (requested.branch !== null && requested.branch !== undefined)
    throw invalidField('body.branch', "requires a repository: set body.repository, or the project's defaultRepository");

  return null;
}

/** The clone URL; null for a URL on a host that is not allowed. */
export function urlOf(repository: string, hosts: GitHosts): string | null {
  if (!REPOSITORY_URL.test(repository))
    return `${hosts.baseUrl}/${repository}${repository.endsWith('.git') ? '' : '.git'}`;
  return hosts.allowedOrigins.includes(originOf(repository)) ? repository : null;
}

/** Throws `invalid_request` for a URL on a host that is not allowed. `where` names the field. */
export function requireRepositoryAllowed(repository: string, hosts: GitHosts, where: string): void {
  if (urlOf(repository, hosts) !== null) return;
  const { allowedOrigins } = hosts;
  const also = allowedOrigins.length === 0 ? '' : `, or be a URL on ${allowedOrigins.join(' or ')}`;
  const origin = originOf(repository);
  // Written as in the operator's configuration, where https is the default.
  const listed = origin.startsWith('https://') ? origin.slice('https://'.length) : origin;
  const how = `to allow URLs on ${origin}, the operator of this service adds ${listed} to BERTH_GIT_ALLOW_URLS`;
  throw invalidField(where, `must have the form owner/repo${also}; ${how}`);
}

/**
 * True if a project's credentials apply to the URL: its host is that of the project's default
 * repository, or without one the service's own git host. Credentials are never sent to another
 * host.
 */
export function areCredentialsFor(url: string, defaultRepository: string | null, hosts: GitHosts): boolean {
  const home = defaultRepository !== null && REPOSITORY_URL.test(defaultRepository) ? defaultRepository : hosts.baseUrl;
  return originOf(url) === originOf(home);
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

/** Scheme, host and port of a URL, in lower case, without the scheme's default port. */
export function originOf(url: string): string {
  const [, scheme = '', host = ''] = /^(https?):\/\/([^/]*)/.exec(url) ?? [];
  const suffix = DEFAULT_PORTS[scheme] ?? '';
  const lower = host.toLowerCase();
  return `${scheme}://${lower.endsWith(suffix) ? lower.slice(0, -suffix.length) : lower}`;
}
