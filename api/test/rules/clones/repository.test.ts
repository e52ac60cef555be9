// Repository of a create, its clone URL, and the hosts of a project's credentials.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '../../../src/rules/coded-error.ts';
import {
  areCredentialsFor,
  chooseRepository,
  originOf,
  requireRepositoryAllowed,
  urlOf,
  type GitHosts,
} from '../../../src/rules/clones/repository.ts';

const PROJECT = { repository: 'acme/web', branch: 'main' };
const NONE = { repository: null, branch: null };

for (const [title, asked, defaults, expected] of [
  ['nothing asked for, and no default', {}, NONE, null],
  ["the project's defaults together", {}, PROJECT, PROJECT],
  [
    "the project's repository without a branch",
    {},
    { repository: 'acme/web', branch: null },
    { repository: 'acme/web', branch: null },
  ],
  ["the project's branch without a repository is none", {}, { repository: null, branch: 'main' }, null],
  [
    "an own repository takes its own branch, not the project's",
    { repository: 'a/b' },
    PROJECT,
    { repository: 'a/b', branch: null },
  ],
  [
    'an own repository with its branch',
    { repository: 'a/b', branch: 'dev' },
    PROJECT,
    { repository: 'a/b', branch: 'dev' },
  ],
  [
    "the project's own repository asked for by name is one of the request's own",
    { repository: 'acme/web' },
    PROJECT,
    { repository: 'acme/web', branch: null },
  ],
  [
    "a branch alone is one of the project's repository",
    { branch: 'dev' },
    PROJECT,
    { repository: 'acme/web', branch: 'dev' },
  ],
  [
    'a branch that is null is the one that the repository says',
    { branch: null },
    PROJECT,
    { repository: 'acme/web', branch: null },
  ],
  ['a repository that is null is none', { repository: null }, PROJECT, null],
  ['both null are none', { repository: null, branch: null }, PROJECT, null],
] as const) {
  test(`the repository of a create: ${title}`, () => {
    assert.deepEqual(chooseRepository(asked, defaults), expected);
  });
}

for (const [title, asked, defaults] of [
  ['without any repository', { branch: 'dev' }, NONE],
  ['beside a repository that is null', { repository: null, branch: 'dev' }, PROJECT],
] as const) {
  test(`a branch ${title} is refused by name`, () => {
    assert.throws(
      () => chooseRepository(asked, defaults),
      (error) =>
        error instanceof CodedError &&
        error.code === 'invalid_request' &&
        error.message.startsWith('body.branch requires a repository'),
    );
  });
}

const HOSTS: GitHosts = {
  baseUrl: 'https://git.example.test/scm',
  allowedOrigins: ['https://other.example.test', 'http://10.0.0.1:3000'],
};

test('owner/repo resolves against the base URL; a URL on an allowed host is unchanged', () => {
  assert.equal(urlOf('acme/web', HOSTS), 'https://git.example.test/scm/acme/web.git');
  assert.equal(urlOf('acme/web.git', HOSTS), 'https://git.example.test/scm/acme/web.git');
  for (const url of ['https://other.example.test/a/b', 'https://OTHER.example.test:443/a', 'http://10.0.0.1:3000/a'])
    assert.equal(urlOf(url, HOSTS), url);
});

test('a URL with another host, port or scheme is refused, listing the allowed hosts', () => {
  for (const url of [
    'https://git.example.test/scm/acme/web',
    'http://other.example.test/a',
    'https://other.example.test:8443/a',
    'https://sub.other.example.test/a',
    'https://other.example.test.evil.test/a',
    'https://10.0.0.1:3000/a',
  ]) {
    assert.equal(urlOf(url, HOSTS), null, url);
    assert.throws(() => requireRepositoryAllowed(url, HOSTS, 'body.repository'), {
      message:
        'body.repository must have the form owner/repo, or be a URL on https://other.example.test or ' +
        `http://10.0.0.1:3000; to allow URLs on ${originOf(url)}, the operator of this service ` +
        `adds ${originOf(url).replace('https://', '')} to BERTH_GIT_ALLOW_URLS`,
    });
  }
  assert.throws(
    () => requireRepositoryAllowed('https://a.test/b', { ...HOSTS, allowedOrigins: [] }, 'body.repository'),
    {
      message:
        'body.repository must have the form owner/repo; ' +
        'to allow URLs on https://a.test, the operator of this service adds a.test to BERTH_GIT_ALLOW_URLS',
    },
  );
  assert.throws(
    () => requireRepositoryAllowed('http://a.test:80/b', HOSTS, 'body.repository'),
    /to allow URLs on http:\/\/a\.test, .* adds http:\/\/a\.test to /,
  );
  requireRepositoryAllowed('acme/web', HOSTS, 'body.repository');
});

test("credentials apply to the default repository's host, else the service's, and no other", () => {
  const [own, other] = ['https://git.example.test/scm/acme/web.git', 'https://other.example.test/a/b'];
  for (const home of [null, 'acme/web'])
    assert.deepEqual([areCredentialsFor(own, home, HOSTS), areCredentialsFor(other, home, HOSTS)], [true, false]);

  const home = 'https://other.example.test/another/one';
  assert.deepEqual([areCredentialsFor(own, home, HOSTS), areCredentialsFor(other, home, HOSTS)], [false, true]);
  assert.equal(areCredentialsFor('http://other.example.test/a/b', home, HOSTS), false);
  assert.equal(areCredentialsFor('https://other.example.test:8443/a/b', home, HOSTS), false);
  assert.equal(areCredentialsFor('https://Other.example.test:443/a/b', home, HOSTS), true);
});

test('an origin is normalised to scheme, host and port', () => {
  assert.equal(originOf('https://Git.Example.test:443/a/b'), 'https://git.example.test');
  assert.equal(originOf('http://git.example.test:80'), 'http://git.example.test');
  assert.equal(originOf('http://git.example.test:443/a'), 'http://git.example.test:443');
  assert.equal(originOf('https://h:1443/a'), 'https://h:1443');
});
