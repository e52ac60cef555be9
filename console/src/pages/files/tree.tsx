// Folders and files; each folder is listed when it is opened.
import { useQuery } from '@tanstack/react-query';
import { File, FileQuestionMark, Folder, FolderOpen, Link2, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { folderQuery } from '../../queries/files.ts';
import { ROOT } from '../../rules/files.ts';
import { filesText as text } from '../../text/files.ts';
import { Alert, Untrusted } from '../../ui/kit/index.ts';
import { Loaded } from '../frame/content.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import css from './files.module.css';

interface TreeProps {
  /** Whether folders may be listed. */
  awake: boolean;
  selected: string;
  opened: ReadonlySet<string>;
  onSelect: (entry: api.FileEntry) => void;
}

const ICONS: Readonly<Record<string, LucideIcon>> = { file: File, link: Link2, other: FileQuestionMark };
const HOME: api.FileEntry = { label: text.root, path: ROOT, type: 'directory' };

export function Tree(props: TreeProps): ReactNode {
  return (
    <ul className={css.entries}>
      <Entry {...props} entry={HOME} />
    </ul>
  );
}

function Entry({ entry, ...props }: TreeProps & { entry: api.FileEntry }): ReactNode {
  const isFolder = entry.type === 'directory';
  const open = isFolder && props.opened.has(entry.path);
  const kind = entry.kind ?? entry.type;
  const Icon = isFolder ? (open ? FolderOpen : Folder) : (ICONS[kind] ?? File);
  return (
    <li>
      <button
        type="button"
        className={css.entry}
        aria-expanded={isFolder ? open : undefined}
        aria-current={entry.path === props.selected ? 'true' : undefined}
        onClick={() => props.onSelect(entry)}
      >
        <Icon aria-hidden />
        <Untrusted text={entry.label} />
        {kind === 'link' || kind === 'other' ? <span className={css.kind}>{text.kinds[kind]}</span> : null}
      </button>
      {open ? <Entries {...props} folder={entry.path} /> : null}
    </li>
  );
}

function Entries({ folder, ...props }: TreeProps & { folder: string }): ReactNode {
  const { id } = useSandboxInView().sandbox;
  const query = useQuery({ ...folderQuery(id, folder), enabled: props.awake });
  if (query.error !== null && query.data === undefined) return <Alert title={text.missing} error={query.error} />;
  return (
    <Loaded query={query} rows={2}>
      {({ entries, truncated }) => (
        <>
          {truncated ? <p className={css.truncated}>{text.truncated}</p> : null}
          {entries.length === 0 ? (
            <p className={css.none}>{text.empty}</p>
          ) : (
            <ul className={css.entries}>
              {/* Two names that are not UTF-8 may look alike. */}
              {entries.map((entry, index) => (
                <Entry key={`${index} ${entry.path}`} {...props} entry={entry} />
              ))}
            </ul>
          )}
        </>
      )}
    </Loaded>
  );
}
