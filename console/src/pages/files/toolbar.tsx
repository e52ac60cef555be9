// Actions on the chosen file or folder, and uploads into its folder by a button or a drop.
import { Download, FilePlus, FolderPlus, RefreshCw, Trash2, Upload } from 'lucide-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { downloadFile, isCode, refreshFolders, uploadFile } from '../../queries/files.ts';
import { copyCommand, DOWNLOAD_BYTES, join, ROOT } from '../../rules/files.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { en } from '../../text/en.ts';
import { filesText as text } from '../../text/files.ts';
import { CallButton, DialogForm, useCall } from '../../ui/forms/index.ts';
import { Alert, Button, toast } from '../../ui/kit/index.ts';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { CreateDialog, DeleteDialog, RenameDialog } from './dialogs.tsx';
import css from './files.module.css';

interface ToolbarProps {
  /** The chosen entry, once it is known. */
  entry: api.FileEntry | undefined;
  /** The chosen folder, or that of the chosen file. */
  folder: string;
  awake: boolean;
  /** Why nothing can be changed; null: it can. */
  reason: string | null;
  onSelect: (path: string) => void;
}

export function Toolbar({ entry, folder, awake, reason, onSelect }: ToolbarProps) {
  const { id } = useSandboxInView().sandbox;
  const input = useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = useState<{ folder: string; files: readonly File[] } | null>(null);
  const start = (files: readonly File[]): void => {
    if (files.length > 0) setChosen({ folder, files });
  };
  const dropping = useDrop(reason === null, start);
  const isFile = entry !== undefined && (entry.kind === 'file' || entry.kind === 'link');
  const isLong = entry !== undefined && (entry.size ?? 0) > DOWNLOAD_BYTES;
  const asleep = awake ? null : text.needsAwake;
  const tooLong = isLong ? text.tooLongToDownload(copyCommand(id)) : null;
  const creation = (kind: 'file' | 'folder'): ReactNode => (
    <CreateDialog folder={folder} kind={kind} onCreated={onSelect} />
  );
  return (
    <div className={css.toolbar}>
      <div className={css.buttons}>
        <Button icon={FilePlus} reason={reason} dialog={creation('file')}>
          {text.buttons.newFile}
        </Button>
        <Button icon={FolderPlus} reason={reason} dialog={creation('folder')}>
          {text.buttons.newFolder}
        </Button>
        <Button icon={Upload} reason={reason} onClick={() => input.current?.click()}>
          {text.buttons.upload}
        </Button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={text.uploadInput}
          onChange={({ target }) => {
            start([...(target.files ?? [])]);
            target.value = '';
          }}
        />
        <Button icon={RefreshCw} reason={asleep} onClick={() => void refreshFolders(id)}>
          {text.buttons.refresh}
        </Button>
        {isFile ? (
          <CallButton
            icon={Download}
            reason={asleep ?? tooLong}
            failed={text.buttons.download}
            run={() => downloadFile(id, entry.path)}
          >
            {text.buttons.download}
          </CallButton>
        ) : null}
        {entry === undefined || entry.path === ROOT ? null : (
          <>
            <Button reason={reason} dialog={<RenameDialog entry={entry} onSelect={onSelect} />}>
              {text.rename}
            </Button>
            <Button
              kind="danger"
              icon={Trash2}
              reason={reason}
              dialog={<DeleteDialog entry={entry} onSelect={onSelect} />}
            >
              {text.removeWords('', entry.type === 'directory').submit}
            </Button>
          </>
        )}
      </div>
      {dropping ? <p className={css.drop}>{text.drop(visibleText(folder))}</p> : null}
      {chosen === null ? null : (
        <Uploads key={chosen.files.map(({ name }) => name).join('/')} {...chosen} onDone={() => setChosen(null)} />
      )}
    </div>
  );
}

/** Takes files that are dropped anywhere on the page. Returns whether a drag is over it. */
function useDrop(allowed: boolean, onDrop: (files: readonly File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const drop = useRef(onDrop);
  useEffect(() => {
    drop.current = onDrop;
  });
  useEffect(() => {
    const onOver = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes('Files') !== true) return;
      // Otherwise the browser opens the file in place of the page.
      event.preventDefault();
      setOver(allowed);
    };
    const onLeave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const onEnd = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes('Files') !== true) return;
      event.preventDefault();
      setOver(false);
      if (allowed) drop.current([...event.dataTransfer.files]);
    };
    const left = new AbortController();
    const { signal } = left;
    document.addEventListener('dragover', onOver, { signal });
    document.addEventListener('dragleave', onLeave, { signal });
    document.addEventListener('drop', onEnd, { signal });
    return () => left.abort();
  }, [allowed]);
  return over;
}

/** Uploads one file after the other. A file is replaced only after a question. */
function Uploads({ folder, files, onDone }: { folder: string; files: readonly File[]; onDone: () => void }) {
  const { id } = useSandboxInView().sandbox;
  const [at, setAt] = useState(0);
  const upload = useCall();
  const begun = useRef(-1);
  const file = files[at];
  const name = visibleText(file?.name ?? '');
  const next = (): void => {
    upload.reset();
    if (at + 1 < files.length) setAt(at + 1);
    else onDone();
  };
  const send = (replace: boolean): void => {
    if (file === undefined) return;
    upload.run(
      () => uploadFile(id, join(folder, file.name), file, replace),
      () => {
        toast(text.uploaded(name));
        next();
      },
    );
  };
  useEffect(() => {
    if (begun.current === at) return;
    begun.current = at;
    send(false);
  });
  if (isCode(upload.error, 'file_exists'))
    return <DialogForm danger words={text.replaceWords(name)} send={async () => send(true)} onClose={next} />;
  if (upload.error !== null) {
    return (
      <Alert title={text.uploadFailed(name)} error={upload.error}>
        <p>
          <Button onClick={() => send(false)}>{en.states.retry}</Button>{' '}
          <Button onClick={next}>{en.states.cancel}</Button>
        </p>
      </Alert>
    );
  }
  return <output>{text.uploading(name)}</output>;
}
