//! The devices that a request selects.

use quarrier_gpu::{DeviceChoice, Error};

use super::device;

#[test]
fn wishes_are_read_as_they_are_written() {
    let read = |text: &str| text.parse::<DeviceChoice>();
    assert_eq!(read("auto"), Ok(DeviceChoice::Auto));
    assert_eq!(read("cpu"), Ok(DeviceChoice::Cpu));
    assert_eq!(read("gpu"), Ok(DeviceChoice::Gpu(0)));
    assert_eq!(read("gpu:3"), Ok(DeviceChoice::Gpu(3)));
    assert_eq!(read("all"), Ok(DeviceChoice::All));
    for wrong in ["", "gpus", "gpu:", "gpu:-1", "gpu:x", "GPU", "cpu:0"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn without_a_device_a_wish_for_one_is_refused_in_one_line() {
    for wish in [DeviceChoice::Gpu(0), DeviceChoice::Gpu(7), DeviceChoice::All] {
        let Err(Error::NoDevice(text)) = wish.choose(Vec::new()) else {
            panic!("{wish:?} was granted")
        };
        assert!(!text.contains('\n') && text.contains("--device cpu"), "{text}");
    }
    for wish in [DeviceChoice::Auto, DeviceChoice::Cpu] {
        assert!(wish.choose(Vec::new()).unwrap().is_empty());
    }
}

#[test]
fn a_device_that_is_not_there_is_refused_with_those_that_are() {
    let Some(device) = device() else { return };
    let all = vec![device.clone()];
    let Err(error) = DeviceChoice::Gpu(1).choose(all.clone()) else { panic!("there is no gpu:1") };
    assert!(error.to_string().contains("gpu:0 is"), "{error}");
    assert_eq!(DeviceChoice::Gpu(0).choose(all.clone()).unwrap().len(), 1);
    assert_eq!(DeviceChoice::All.choose(all).unwrap().len(), 1);
}
