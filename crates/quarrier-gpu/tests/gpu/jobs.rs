//! Every type of copy.

use quarrier_gpu::{Error, Job};

use super::device;

#[test]
fn written_bytes_are_read_back() {
    let Some(device) = device() else { return };
    let mut queue = device.queue().unwrap();
    for bytes in [1usize, 4, 63, 4096, 100_001] {
        let content: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
        let (buffer, other) = (device.buffer(bytes).unwrap(), device.buffer(bytes).unwrap());
        let (mut back, mut copied) = (vec![0; bytes], vec![0; bytes]);
        let mut job = Job::new();
        job.write(&buffer, &content);
        job.copy(&buffer, &other);
        job.read(&buffer, &mut back);
        job.read(&other, &mut copied);
        queue.run(job).unwrap();
        assert_eq!(back, content);
        assert_eq!(copied, content);
    }
}

#[test]
fn zeros_are_written_from_the_start() {
    let Some(device) = device() else { return };
    let mut queue = device.queue().unwrap();
    let buffer = device.buffer_with(&mut queue, &[9; 16]).unwrap();
    let mut back = [0; 16];
    let mut job = Job::new();
    job.zero(&buffer, 8);
    job.read(&buffer, &mut back);
    queue.run(job).unwrap();
    assert_eq!(back, [0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_anything_runs() {
    let Some(device) = device() else { return };
    let mut queue = device.queue().unwrap();
    let buffer = device.buffer(8).unwrap();
    let mut job = Job::new();
    job.write(&buffer, &[0; 9]);
    assert!(matches!(queue.run(job), Err(Error::Arguments(_))));
}

#[test]
fn a_buffer_is_not_copied_to_itself() {
    let Some(device) = device() else { return };
    let mut queue = device.queue().unwrap();
    let buffer = device.buffer_with(&mut queue, &[7; 8]).unwrap();
    let mut back = [0; 8];
    let mut job = Job::new();
    job.zero(&buffer, 8);
    job.copy(&buffer, &buffer);
    assert!(matches!(queue.run(job), Err(Error::Arguments(_))));
    let mut job = Job::new();
    job.read(&buffer, &mut back);
    queue.run(job).unwrap();
    assert_eq!(back, [7; 8], "nothing of a refused job runs");
}

#[test]
fn pinned_memory_is_memory() {
    let Some(device) = device() else { return };
    let mut queue = device.queue().unwrap();
    let mut pinned = device.pinned(10_000).unwrap();
    assert_eq!(pinned.len(), 10_000);
    assert!(pinned.iter().all(|&byte| byte == 0));
    pinned.fill(5);
    let buffer = device.buffer(10_000).unwrap();
    let mut back = vec![0; 10_000];
    let mut job = Job::new();
    job.write(&buffer, &pinned);
    job.read(&buffer, &mut back);
    queue.run(job).unwrap();
    assert_eq!(back, *pinned);
    // The memory is writable again afterwards, and can serve as a buffer of the pipeline.
    pinned[0] = 6;
    let mut lent = quarrier_core::region::AlignedBuffer::lent(Box::new(pinned));
    lent[1] = 7;
    assert_eq!(lent[..3], [6, 7, 5]);
}

#[test]
fn times_are_in_the_order_of_a_job() {
    let Some(device) = device() else { return };
    let mut queue = device.queue().unwrap();
    let (content, mut back) = (vec![1; 1 << 20], vec![0; 1 << 20]);
    let buffer = device.buffer(1 << 20).unwrap();
    let mut job = Job::new();
    job.write(&buffer, &content);
    job.read(&buffer, &mut back);
    let times = queue.run(job).unwrap();
    assert!(times.copy.end >= times.copy.start && times.collect.end >= times.copy.start);
    assert!(times.kernel.busy.is_zero());
}
