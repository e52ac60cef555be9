// Tags of operations, derived from their paths. A path without a known tag gets a new one.

interface Tag {
  name: string;
  description: string;
}

interface KnownTag extends Tag {
  /** Matches the path without `/v1` and `/orgs/{orgId}`. */
  paths: RegExp;
}

const KNOWN: readonly KnownTag[] = [
  { name: 'Health', description: 'Health check of the service.', paths: /^\/health$/ },
  { name: 'Service', description: 'Description of the service, and its hosts.', paths: /^\/service(\/|$)/ },
  { name: 'Identity', description: 'The caller and its orgs.', paths: /^\/me(\/orgs.*)?$/ },
  {
    name: 'Agent tokens',
    description: 'Personal tokens that control agent sessions.',
    paths: /^(\/me)?\/agent-tokens/,
  },
  { name: 'Sign-ins', description: 'Browsers and devices in which the caller is signed in.', paths: /^\/me\/sign-ins/ },
  {
    name: 'Orgs',
    description: 'Organizations and their members.',
    paths: /^\/(orgs(\/\{\w+\})?|members(\/.*)?)$/,
  },
  { name: 'Single sign-on', description: 'Mail domains of an org, and the requirement.', paths: /^\/(sso|domains)/ },
  { name: 'Invitations', description: 'Invitations to an org.', paths: /^\/invitations/ },
  {
    name: 'API keys',
    description: 'Credentials for scripts, CI and platforms. Managed with an access token only.',
    paths: /^\/api-keys/,
  },
  { name: 'Activity', description: 'The activity feed of an org.', paths: /^\/activity/ },
  {
    name: 'Projects',
    description: 'Groups of sandboxes, with defaults for new ones.',
    paths: /^\/projects(?!.*usage)/,
  },
  { name: 'Usage', description: 'Machine hours and their caps.', paths: /\/usage/ },
  { name: 'Billing', description: 'Plans and payment.', paths: /^\/(subscription|billing)/ },
  { name: 'Previews', description: 'Preview links to ports of a sandbox.', paths: /^\/sandboxes\/\{\w+\}\/previews/ },
  {
    name: 'Files',
    description: 'Files of an awake sandbox. Relative paths are relative to /code.',
    paths: /^\/sandboxes\/\{\w+\}\/files?(\/|$)/,
  },
  {
    name: 'Metrics',
    description: 'Resource use of a sandbox, and size recommendations.',
    paths: /^\/sandboxes\/\{\w+\}\/metrics/,
  },
  { name: 'Agent sessions', description: 'Conversations with a coding agent in a sandbox.', paths: /agent-sessions/ },
  {
    name: 'Sandboxes',
    description: 'Isolated microVMs that run code: create, use, sleep, wake, resize, destroy.',
    paths: /^\/sandboxes/,
  },
];

/** Tag of a route, by its path. Without a known tag, the first path segment names a new one. */
export function tagOf(path: string): Tag {
  const bare = path.replace(/^\/v1/, '').replace(/^\/orgs\/\{\w+\}(?=\/)/, '');
  const known = KNOWN.find(({ paths }) => paths.test(bare));
  if (known !== undefined) return { name: known.name, description: known.description };
  const [, first = 'other'] = bare.split('/');
  const words = first.replaceAll('-', ' ');
  return { name: words.charAt(0).toUpperCase() + words.slice(1), description: `Routes below \`/${first}\`.` };
}

/** Tags that come first in a document. */
const ORDER = [
  'Health',
  'Service',
  'Identity',
  'Sandboxes',
  'Files',
  'Previews',
  'Metrics',
  'Agent sessions',
  'Projects',
  'Usage',
];

/** Sorts tags; unknown ones come last. */
export function inOrder(tags: readonly Tag[]): Tag[] {
  const names = [...new Set([...ORDER, ...KNOWN.map(({ name }) => name)])];
  // -1 becomes the largest number.
  const place = ({ name }: Tag): number => names.indexOf(name) >>> 0;
  const once = [...new Map(tags.map((tag) => [tag.name, tag])).values()];
  return once.toSorted((one, other) => place(one) - place(other) || (one.name < other.name ? -1 : 1));
}
