// Command palette: commands of the page in view, pages of the org, sandboxes by name or id.
// oxlint-disable jsx-a11y/prefer-tag-over-role -- a select has no search and no reasons
import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useState, useSyncExternalStore } from 'react';
import { useNavigate } from 'react-router';
import type { api } from '@berth/sdk';
import { NAME_CHARACTERS } from '@berth/sdk/limits';
import { orgsQuery } from '../../queries/orgs.ts';
import { foundSandboxesQuery } from '../../queries/sandboxes.ts';
import { isFoundBy, keyAfter, matches } from '../../rules/page/palette.ts';
import { PATHS } from '../../rules/paths.ts';
import { writeListing } from '../../rules/sandbox-filter.ts';
import { en } from '../../text/en.ts';
import { paletteText as text } from '../../text/palette.ts';
import { forgetPerson } from '../../session/client.ts';
import { setTheme, type Theme } from '../../theme/theme.ts';
import { Modal, Untrusted } from '../../ui/kit/index.ts';
import { ORG_LINKS, OUTER_LINKS, serviceLinks, SETTINGS_LINKS, SIGN_OUT } from './links.ts';
import { pageCommands, type Command } from './page-commands.ts';
import css from './palette.module.css';

const TYPING_MS = 150;

export interface PaletteProps {
  org: api.Org | undefined;
  onClose: () => void;
  onShortcuts: () => void;
}

interface Option extends Command {
  key: string;
  /** Second line: the id of a sandbox. */
  detail?: string;
}

interface Group {
  name: string;
  options: readonly Option[];
}

const show = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' });

export function Palette(props: PaletteProps) {
  const id = useId();
  const [typed, setTyped] = useState('');
  const [chosen, setChosen] = useState<string | null>(null);
  const query = typed.trim();
  const found = useSandboxes(props.org, query);
  const groups = useGroups(props, query, found.sandboxes);
  const options = groups.flatMap((group) => group.options);
  const active = options.find(({ key }) => key === chosen) ?? options[0];
  const run = (option: Option | undefined): void => (option?.reason === null ? option.run() : undefined);
  const move = (by: 1 | -1): void =>
    setChosen(
      keyAfter(
        options.map(({ key }) => key),
        active?.key,
        by,
      ),
    );
  return (
    <Modal className={css.palette} aria-label={text.label} onClose={props.onClose}>
      <div className={css.content}>
        <input
          role="combobox"
          aria-label={text.label}
          aria-expanded={options.length > 0}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={active === undefined ? undefined : `${id}-${options.indexOf(active)}`}
          placeholder={text.label}
          autoComplete="off"
          spellCheck={false}
          maxLength={NAME_CHARACTERS}
          value={typed}
          onChange={({ target }) => {
            setTyped(target.value);
            setChosen(null);
          }}
          onKeyDown={(event) => {
            // Keys of an input method choose its words.
            if (event.nativeEvent.isComposing || !['ArrowDown', 'ArrowUp', 'Enter'].includes(event.key)) return;
            event.preventDefault();
            if (event.key === 'Enter') run(active);
            else move(event.key === 'ArrowDown' ? 1 : -1);
          }}
        />
        <div id={id} role="listbox" aria-label={text.results} className={css.list}>
          {groups.map(({ name, options: ofGroup }) => (
            <div key={name} role="group" aria-label={name}>
              <div className={css.group} aria-hidden>
                {name}
              </div>
              {ofGroup.map((option) => (
                // The keys of the field choose the option.
                // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus
                <div
                  key={option.key}
                  ref={option === active ? show : undefined}
                  id={`${id}-${options.indexOf(option)}`}
                  role="option"
                  aria-selected={option === active}
                  aria-disabled={option.reason !== null || undefined}
                  onPointerMove={() => setChosen(option.key)}
                  onClick={() => run(option)}
                >
                  <Untrusted text={option.name} />
                  {option.detail === undefined ? null : <code>{option.detail}</code>}
                  {option.reason === null ? null : <span className={css.reason}>{option.reason}</span>}
                </div>
              ))}
            </div>
          ))}
        </div>
        <output className={css.state}>{found.state ?? text.count(options.length)}</output>
      </div>
    </Modal>
  );
}

/** Sandboxes whose name or id the query is part of, when typing pauses. */
function useSandboxes(org: api.Org | undefined, query: string) {
  const [q, setQ] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setQ(query), TYPING_MS);
    return () => clearTimeout(timer);
  }, [query]);
  const wants = org !== undefined && query !== '';
  const { data, error, isPlaceholderData } = useQuery({
    ...foundSandboxesQuery(org?.id ?? '', q),
    enabled: wants && q !== '',
  });
  // Results of a former query stay while they match.
  const sandboxes = wants ? (data ?? []).filter((one) => isFoundBy(one, query)) : [];
  const searches = wants && error === null && (q !== query || data === undefined || isPlaceholderData);
  return { sandboxes, state: error !== null && wants ? text.failed(error.message) : searches ? text.searching : null };
}

function useGroups({ org, onClose, onShortcuts }: PaletteProps, query: string, sandboxes: readonly api.Sandbox[]) {
  const navigate = useNavigate();
  const { data: orgs = [] } = useQuery(orgsQuery);
  const commands = useSyncExternalStore(pageCommands.subscribe, pageCommands.get);
  const option = (key: string, name: string, run: () => void, reason: string | null = null): Option => ({
    key,
    name,
    reason,
    run: () => {
      onClose();
      run();
    },
  });
  const link = (path: string, name: string): Option => option(path, name, () => void navigate(path));
  const ofOrg =
    org === undefined ? [] : [...ORG_LINKS, ...SETTINGS_LINKS].map((one) => link(one.path(org.id), one.name));
  const known: Group[] = [
    {
      name: text.groups.page,
      options: commands.map(({ name, run, reason }) => option(`page-${name}`, name, run, reason)),
    },
    {
      name: text.groups.pages,
      options: [
        ...ofOrg,
        ...serviceLinks(orgs).map((one) => link(one.path(''), one.name)),
        link(PATHS.inbox, en.nav.inbox),
        link(PATHS.me, en.nav.me),
      ],
    },
    {
      name: text.groups.orgs,
      options: orgs
        .filter(({ id }) => id !== org?.id)
        .map(({ id, name }) => link(PATHS.sandboxes(id), text.switchTo(name))),
    },
    {
      name: text.groups.settings,
      options: [
        ...Object.entries(en.nav.themes).map(([theme, name]) =>
          option(`theme-${theme}`, text.theme(name), () => setTheme(theme as Theme)),
        ),
        { key: 'shortcuts', name: text.shortcuts, reason: null, run: onShortcuts },
        ...OUTER_LINKS.map(([href, name]) =>
          option(href, name, () => {
            if (href === SIGN_OUT) forgetPerson();
            location.assign(href);
          }),
        ),
      ],
    },
  ];
  const groups = known.map(({ name, options }) => ({
    name,
    options: options.filter((one) => matches(one.name, query)),
  }));
  if (org !== undefined && query !== '') {
    const all = `${PATHS.sandboxes(org.id)}?${writeListing({ q: query }).toString()}`;
    groups.push({
      name: text.groups.sandboxes,
      options: [
        ...sandboxes.map(({ id, name }) => ({ ...link(PATHS.sandbox(id), name), detail: id })),
        { ...link(all, text.filter(query)), key: 'filter' },
      ],
    });
  }
  return groups.filter(({ options }) => options.length > 0);
}
