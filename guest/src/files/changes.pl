# Changes of the helper for file calls (program.pl, which runs after this part):
#   write PATH LENGTH CONDITION MOST_HELD TRANSFER MODE, then the content   `ok LENGTH`. Up to MOST_HELD
#       bytes arrive before anything changes. A longer content goes to an unnamed file as it arrives, and
#       cannot be written in place. CONDITION 1: right before the change, sends `check LENGTH`, a
#       line feed and the old content, and goes on after the byte `y`. 2: the path must not exist.
#       MODE: permission bits; -1: those of the old file.
#   mode PATH MODE            `ok`; follows links
#   remove PATH RECURSIVE     `ok`; a link itself, an empty folder, or all of a folder
#   move PATH TO REPLACE      `ok`
#   folder PATH               `ok`; makes missing parents
use strict;
our ($o_path, $o_directory, $o_nofollow, $o_gently, $o_tmpfile, $fsync, $fallocate, $linkat, $renameat2);
our ($o_rdonly, $piece, $peer, $transfers);
my ($o_wronly, $o_creat_excl) = (1, 0300);
my ($EPERM, $ENOENT, $EACCES, $EBUSY, $EEXIST, $EXDEV, $EISDIR, $EINVAL, $ETXTBSY, $EFBIG, $ENOSPC, $ENOTEMPTY, $ELOOP,
  $EOPNOTSUPP, $EDQUOT) = (1, 2, 13, 16, 17, 18, 21, 22, 26, 27, 28, 39, 40, 95, 122);
my $here = -100;

# Enters the folder; makes its missing parts.
sub enter {
  my ($folder) = @_;
  return if chdir $folder;
  refuse($! + 0) if $! != $ENOENT;
  for (my $at = 1; ($at = index($folder, '/', $at)) >= 0; $at += 1) {
    my $part = substr($folder, 0, $at);
    mkdir $part or $! == $EEXIST or refuse($! + 0);
  }
  chdir $folder or refuse($! + 0);
}

sub put_all {
  my ($file, $content) = @_;
  for (my $at = 0; $at < length $content;) {
    my $sent = syswrite($file, $content, length($content) - $at, $at);
    return 0 unless defined $sent;
    $at += $sent;
  }
  return 1;
}

# Writes the content, and $rest bytes that have yet to arrive.
sub put {
  my ($file, $content, $rest) = @_;
  put_all($file, $content) or return 0;
  while ($rest > 0) {
    $content = take($rest < $piece ? $rest : $piece);
    $rest -= length $content;
    put_all($file, $content) or return 0;
  }
  return syscall($fsync, fileno($file)) == 0 || $! == $EINVAL;
}

# For a file that cannot be replaced by another. Reserves the space first, so that a full disk keeps
# the old content.
sub write_in_place {
  my ($file, $content, $mode) = @_;
  my $size = length $content;
  my ($keep_size, $from) = (1, 0);
  if ($size > 0 && syscall($fallocate, fileno($file), $keep_size, $from, $size) != 0) {
    refuse($! + 0) if $! == $ENOSPC || $! == $EDQUOT || $! == $EFBIG;
  }
  $mode < 0 or chmod $mode, $file or refuse($! + 0);
  my $before = -s $file;
  put($file, $content, 0) or refuse($! + 0);
  if ($before > $size) {
    truncate($file, $size) && syscall($fsync, fileno($file)) == 0 or refuse($! + 0);
  }
}

# Links an unnamed file to $name.
sub name_it {
  my ($file, $name) = @_;
  my $follow = 0x400;
  my $source = '/proc/self/fd/' . fileno $file;
  my $target = "$name";
  return syscall($linkat, $here, $source, $here, $target, $follow) == 0;
}

# The word of the refusal if the file no longer has the content that the write is based on.
sub change_of {
  my ($name) = @_;
  return $! == $ENOENT ? 'changed' : $! + 0 unless lstat $name;
  my ($file, @stat) = open_regular($name, $o_rdonly, $o_nofollow, 0);
  say_all("check $stat[7]\n");
  send_content($file, $stat[7]);
  return take(1) eq 'y' ? '' : 'changed';
}

# Flushes the current folder.
sub flush_folder {
  sysopen(my $folder, '.', $o_directory | $o_gently) or return;
  syscall($fsync, fileno($folder)) == 0 || $! == $EINVAL or refuse($! + 0);
}

sub write_file {
  my ($path, $length, $condition, $most_held, $transfer, $mode) = @_;
  my $rest = $length > $most_held ? $length - $most_held : 0;
  ($transfers, $piece) = (1, 65536) if $transfer;
  my $content = take($length - $rest);
  # Writes the target of a symbolic link, existing or not; the link stays.
  for (my $hops = 0; lstat $path and -l _; $hops += 1) {
    refuse($ELOOP) if $hops == 40;
    my $to = readlink $path;
    refuse($! + 0) unless defined $to;
    my ($folder) = $path =~ m{^(.*/)}s;
    $path = $to =~ m{^/} ? $to : $folder . $to;
  }
  my ($folder, $name) = $path =~ m{^(.*/)([^/]+)$}s;
  refuse('directory') if !defined $name || $name eq '.' || $name eq '..';
  enter($folder);

  my ($there, @old);
  if (lstat $name) {
    # A running program cannot be written, only replaced.
    ($there, @old) = open_regular($name, $o_wronly, $o_nofollow, $ETXTBSY);
  } elsif ($! != $ENOENT) {
    refuse($! + 0);
  }
  refuse($EEXIST) if @old && $condition == 2;
  # Too long to be kept until it can be written in place.
  $there = undef if $rest > 0;

  # Unnamed until complete, so that a killed process leaves nothing behind. With a temporary name
  # where the file system has no O_TMPFILE.
  my $temporary = ".berth-write-$$-" . time;
  my $named = 0;
  my $made = sysopen(my $fresh, '.', $o_tmpfile | $o_wronly, 0666);
  if (!$made && ($! == $EOPNOTSUPP || $! == $EISDIR || $! == $EINVAL || $! == $ENOENT)) {
    $made = $named = sysopen($fresh, $temporary, $o_creat_excl | $o_wronly | $o_nofollow, 0666);
  }
  my $error = $made ? 0 : $! + 0;
  my $fail = sub {
    my ($why) = @_;
    unlink $temporary if $named;
    refuse($why);
  };
  my $compare = sub {
    my $why = $condition == 1 ? change_of($name) : '';
    $fail->($why) if $why;
  };
  my $in_place = sub {
    # Only the owner may change the mode.
    $fail->($EPERM) if $mode >= 0 && $> != 0 && $> != $old[4];
    $compare->();
    unlink $temporary if $named;
    write_in_place($there, $content, $mode);
    say_all('ok ' . length($content) . "\n");
    exit 0;
  };
  if (!$made) {
    $in_place->() if $there && ($error == $EPERM || $error == $EACCES);
    refuse($error);
  }
  if (@old) {
    if (!chown $old[4], $old[5], $fresh) {
      $in_place->() if $there;
      $fail->($! + 0);
    }
  }
  my $new_mode = $mode < 0 && @old ? $old[2] & 01777 : $mode;
  $new_mode < 0 or chmod $new_mode, $fresh or $fail->($! + 0);
  put($fresh, $content, $rest) or $fail->($! + 0);
  $compare->();
  if ($condition == 2) {
    ($named ? link $temporary, $name : name_it($fresh, $name)) or $fail->($! + 0);
    unlink $temporary if $named;
  } elsif ($named || @old || !name_it($fresh, $name)) {
    if (!$named) {
      name_it($fresh, $temporary) or $fail->($! + 0);
      $named = 1;
    }
    if (!rename $temporary, $name) {
      my $why = $! + 0;
      # A sticky folder, or a file that is a mount point.
      $in_place->() if $there && ($why == $EPERM || $why == $EACCES || $why == $EBUSY || $why == $EXDEV);
      $fail->($why);
    }
  }
  flush_folder();
  say_all("ok $length\n");
}

# The folder of a path, with a slash at its end, and the last name.
sub parts {
  my ($folder, $name) = $_[0] =~ m{^(.*/)([^/]+)$}s;
  # The root folder.
  refuse($EBUSY) unless defined $name;
  return ($folder, $name);
}

# Folders are entered and left by descriptor: a link that appears meanwhile is not followed.
sub remove_entry {
  my ($name, $recursive) = @_;
  lstat $name or refuse($! + 0);
  unless (-d _) {
    unlink $name or refuse($! + 0);
    return;
  }
  return if rmdir $name;
  refuse($! + 0) unless $recursive && ($! == $ENOTEMPTY || $! == $EEXIST);
  sysopen(my $above, '.', $o_directory | $o_gently) or refuse($! + 0);
  {
    my ($folder, $names);
    sysopen($folder, $name, $o_directory | $o_nofollow | $o_gently) && chdir $folder && opendir $names, '.' or refuse($! + 0);
    my @names = grep { $_ ne '.' && $_ ne '..' } readdir $names;
    close $folder;
    closedir $names;
    for (@names) { remove_entry($_, 1) if lstat $_; }
  }
  chdir $above or refuse($! + 0);
  rmdir $name or refuse($! + 0);
}

sub remove {
  my ($path, $recursive) = @_;
  my ($folder, $name) = parts($path);
  chdir $folder or refuse($! + 0);
  remove_entry($name, $recursive);
  flush_folder();
  say_all("ok\n");
}

sub move {
  my ($from, $to, $replace) = @_;
  my $no_replace = 1;
  syscall($renameat2, $here, $from, $here, $to, $replace ? 0 : $no_replace) == 0 or refuse($! + 0);
  for my $path ($from, $to) {
    my ($folder) = parts($path);
    chdir $folder and flush_folder();
  }
  say_all("ok\n");
}

sub set_mode {
  my ($path, $mode) = @_;
  chmod $mode, $path or refuse($! + 0);
  say_all("ok\n");
}

sub make_folder {
  my ($folder, $name) = parts($_[0]);
  enter($folder);
  mkdir $name or refuse($! + 0);
  flush_folder();
  say_all("ok\n");
}
